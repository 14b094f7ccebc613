// Tidemill for C++17: the C ABI (tidemill.h) as values that free themselves, exceptions and operators. Header only.
//
// Results.    A call that fails throws tidemill::Error, with the status of C and the library's sentence.
// Ownership.  Objects own their handles. Tensors can be copied: copies are the same tensor. Everything else moves. What
//             was moved from may be destroyed and assigned to, nothing else.
// Values.     The result of an operation is a Value: small, copied freely, without memory of its own, good as long as
//             its recording. +, -, *, / on values, tensors and numbers record operations. Comparisons are
//             r.binary(TM_LT, a, b).
// Callbacks.  A callback may throw: the exception goes through the library and comes out of the call that waits for it.
// Threads.    As in C: any object from any thread; but what changes the object itself (move, assignment, destruction)
//             excludes all other use of it.
//
// get() gives the handle of C, which stays the object's: functions of tidemill.h that have no method here take it.

#ifndef TIDEMILL_HPP
#define TIDEMILL_HPP

#include <tidemill/accelerator.hpp>

#endif
