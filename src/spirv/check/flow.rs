//! Functions and the way through them: blocks that end, branches to where they may go, values that are there when they
//! are used, and no function that calls itself.

use rspirv::spirv::Op;
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::guard::Refusal;
use super::types::Type;
use super::{Instruction, Module, damaged};

/// A function's instructions, and its blocks in their order.
struct Function {
    begin: usize,
    end: usize,
    blocks: Vec<Block>,
    /// The place of each label.
    labels: FxHashMap<u32, usize>,
}

struct Block {
    /// Instructions from the label to the terminator, both included.
    begin: usize,
    end: usize,
    /// Blocks that it branches to.
    next: Vec<usize>,
}

/// A loop or a selection.
struct Construct {
    number: usize,
    head: usize,
    /// Where its ways meet.
    end: usize,
    /// Where a loop's next round begins.
    again: Option<usize>,
    switch: bool,
}

impl Construct {
    /// Whether inner ones may leave it.
    fn leaves(&self) -> bool {
        self.switch || self.again.is_some()
    }
}

impl Module<'_> {
    pub(super) fn check_functions(&self) -> Result<(), Refusal> {
        let mut at = self.functions_at;
        let mut calls: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        while at < self.instructions.len() {
            let function = self.function(at)?;
            self.check_order(&function)?;
            self.check_dominance(&function)?;
            self.check_calls(&function, &mut calls)?;
            at = function.end;
        }
        // Drivers put functions into their callers, which would never end.
        let mut done = FxHashSet::default();
        for &function in calls.keys() {
            leads_to_itself(function, &calls, &mut Vec::new(), &mut done)?;
        }
        Ok(())
    }

    /// Takes a function apart.
    fn function(&self, begin: usize) -> Result<Function, Refusal> {
        let at = |i: usize| self.instructions.get(i).ok_or_else(|| damaged("a function does not end"));
        if at(begin)?.op != Op::Function {
            return Err(damaged(format!("Op{:?} stands between functions", at(begin)?.op)));
        }
        let (mut i, mut blocks, mut labels) = (begin + 1, Vec::new(), FxHashMap::default());
        while at(i)?.op == Op::FunctionParameter || is_line(at(i)?.op) {
            i += 1;
        }
        while at(i)?.op != Op::FunctionEnd {
            if is_line(at(i)?.op) {
                i += 1;
                continue;
            }
            let label = at(i)?;
            let Some(id) = label.result.filter(|_| label.op == Op::Label) else {
                return Err(damaged(format!("Op{:?} stands between blocks", label.op)));
            };
            labels.insert(id, blocks.len());
            let first = i;
            while !is_terminator(at(i)?.op) {
                i += 1;
                if matches!(at(i)?.op, Op::Label | Op::FunctionEnd | Op::Function | Op::FunctionParameter) {
                    return Err(damaged("a block does not end"));
                }
            }
            i += 1;
            blocks.push(Block { begin: first, end: i, next: Vec::new() });
        }
        if blocks.is_empty() {
            return Err(damaged("a function has no block"));
        }
        let mut function = Function { begin, end: i + 1, blocks, labels };
        self.link(&mut function)?;
        Ok(function)
    }

    /// Finds out where blocks lead.
    fn link(&self, function: &mut Function) -> Result<(), Refusal> {
        let place = |labels: &FxHashMap<u32, usize>, id: u32| match labels.get(&id) {
            Some(0) => Err(damaged("a branch leads to where a function begins")),
            Some(&place) => Ok(place),
            None => Err(damaged("a branch leads into another function")),
        };
        let mut merges = FxHashSet::default();
        for k in 0..function.blocks.len() {
            let Block { begin, end, .. } = function.blocks[k];
            let last = &self.instructions[end - 1];
            let targets = match last.op {
                Op::Branch => &last.ids[..],
                Op::BranchConditional | Op::Switch => &last.ids[1..],
                _ => &[],
            };
            let mut next = Vec::new();
            for &id in targets {
                next.push(place(&function.labels, id)?);
            }
            let merge = self.instructions[begin..end - 1]
                .iter()
                .position(|i| matches!(i.op, Op::SelectionMerge | Op::LoopMerge));
            match merge {
                Some(at) if begin + at + 2 != end => {
                    return Err(damaged("a merge does not stand before a branch"));
                }
                Some(at) => {
                    let merge = &self.instructions[begin + at];
                    let here = merge
                        .ids
                        .iter()
                        .map(|id| place(&function.labels, *id))
                        .collect::<Result<Vec<_>, _>>()?;
                    let loops = merge.op == Op::LoopMerge;
                    let fits = if loops { last.op != Op::Switch } else { last.op != Op::Branch };
                    if !fits || here.contains(&k) && !loops || here[0] <= k || !merges.insert(here[0]) {
                        return Err(damaged("a merge does not belong to its branch"));
                    }
                }
                // Structured control flow: a branch names the block where its ways meet, unless one of them leaves a
                // construct.
                None if last.op == Op::Switch => return Err(damaged("a switch has no merge")),
                None => {}
            }
            // Only the end of a loop leads back, and only to where that loop begins.
            for &to in next.iter().filter(|to| **to <= k) {
                let head = &function.blocks[to];
                let before = self.instructions.get(head.end.wrapping_sub(2)).map(|i| i.op);
                if before != Some(Op::LoopMerge) {
                    return Err(damaged("a branch leads back to what is no loop"));
                }
            }
            function.blocks[k].next = next;
        }
        Ok(())
    }

    /// Parameters, variables and phis stand where they must, and nothing is used before it stands there.
    fn check_order(&self, function: &Function) -> Result<(), Refusal> {
        let head = &self.instructions[function.begin];
        let Some(Type::Function { result, parameters }) =
            head.ids.first().map(|id| self.type_of_id(*id)).transpose()?
        else {
            return Err(damaged("a function has no type"));
        };
        let found: Vec<u32> = self.instructions[function.begin..function.blocks[0].begin]
            .iter()
            .filter(|i| i.op == Op::FunctionParameter)
            .filter_map(|i| i.result_type)
            .collect();
        if head.result_type != Some(result) || found != parameters {
            return Err(damaged("a function and its type disagree"));
        }
        for (k, block) in function.blocks.iter().enumerate() {
            let (mut phis, mut variables) = (true, k == 0);
            for i in &self.instructions[block.begin + 1..block.end] {
                match i.op {
                    op if is_line(op) => {}
                    Op::Phi if phis && k > 0 => {}
                    Op::Variable if variables => phis = false,
                    Op::Phi | Op::Variable => return Err(damaged(format!("Op{:?} stands too late", i.op))),
                    _ => (phis, variables) = (false, false),
                }
            }
            self.check_return(&self.instructions[block.end - 1], result)?;
        }
        for at in function.begin..function.end {
            let i = &self.instructions[at];
            for (k, id) in i.ids.iter().enumerate() {
                let place = self.defined.get(id).copied().unwrap_or(usize::MAX);
                let here = place >= function.begin && place < function.end;
                let global = place < self.functions_at;
                let ahead = super::wanted(i.op, k) == Some("label") || i.op == Op::Phi;
                let function_called = i.op == Op::FunctionCall && k == 0;
                if !(function_called || global || here && (ahead || place < at)) {
                    return Err(damaged(format!("id {id} is used before it is defined")));
                }
            }
        }
        Ok(())
    }

    fn check_return(&self, last: &Instruction<'_>, result: u32) -> Result<(), Refusal> {
        let void = self.type_of_id(result)? == Type::Void;
        let right = match last.op {
            Op::Return => void,
            Op::ReturnValue => !void && self.type_of(last.ids[0])? == result,
            _ => true,
        };
        if right { Ok(()) } else { Err(damaged("a function returns something else than it says")) }
    }

    /// What is used in a block was made on every way to it.
    fn check_dominance(&self, function: &Function) -> Result<(), Refusal> {
        let dominators = dominators(&function.blocks);
        let block_of = |place: usize| function.blocks.iter().position(|b| (b.begin..b.end).contains(&place));
        let dominates = |from: usize, to: usize| {
            let mut at = Some(to);
            while let Some(block) = at {
                if block == from {
                    return true;
                }
                at = dominators[block].filter(|above| *above != block);
            }
            false
        };
        // A block stands behind those that lead to it, whatever way is taken.
        if (1..function.blocks.len()).any(|k| dominators[k].is_some_and(|above| above >= k)) {
            return Err(damaged("a block stands before what leads to it"));
        }
        self.check_constructs(function, &dominators, &dominates)?;
        let mut before: Vec<FxHashSet<u32>> = vec![FxHashSet::default(); function.blocks.len()];
        for block in &function.blocks {
            let label = self.instructions[block.begin].result.unwrap_or(0);
            block.next.iter().for_each(|&next| {
                before[next].insert(label);
            });
        }
        for (k, block) in function.blocks.iter().enumerate() {
            let reachable = k == 0 || dominators[k].is_some();
            for i in &self.instructions[block.begin..block.end] {
                if i.op == Op::Phi {
                    let from: FxHashSet<u32> = i.ids.iter().skip(1).step_by(2).copied().collect();
                    if from != before[k] || i.ids.len() != 2 * from.len() {
                        return Err(damaged("a phi does not name the blocks before it"));
                    }
                }
                for (n, id) in i.ids.iter().enumerate() {
                    let Some(made) = self.defined.get(id).copied().and_then(block_of) else { continue };
                    if super::wanted(i.op, n) == Some("label") || !reachable {
                        continue;
                    }
                    let used = match i.op {
                        Op::Phi => i.ids.get(n + 1).and_then(|label| function.labels.get(label)).copied(),
                        _ => Some(k),
                    };
                    let Some(used) = used else { continue };
                    let used_at_all = used == 0 || dominators[used].is_some();
                    if used_at_all && !dominates(made, used) {
                        return Err(damaged(format!("id {id} is not there on every way to its use")));
                    }
                }
            }
        }
        Ok(())
    }

    /// Loops and selections are entered at their heads alone, and left towards where they say.
    fn check_constructs(
        &self,
        function: &Function,
        dominators: &[Option<usize>],
        dominates: &impl Fn(usize, usize) -> bool,
    ) -> Result<(), Refusal> {
        let reachable = |k: usize| k == 0 || dominators[k].is_some();
        let constructs = self.constructs(function);
        // A construct ends where it says, and where one around it does, or begins its next round.
        let ends = |c: &Construct| -> Vec<usize> {
            let around = constructs.iter().filter(|outer| dominates(outer.head, c.head));
            let limits = around.flat_map(|outer| {
                let again = outer.again.filter(|_| outer.head != c.head);
                [Some(outer.end), again].into_iter().flatten()
            });
            limits.filter(|end| reachable(*end) && !dominates(*end, c.head)).collect()
        };
        let blocks = 0..function.blocks.len();
        let members: Vec<Vec<bool>> = constructs
            .iter()
            .map(|c| {
                let ends = ends(c);
                let holds = |k: usize| dominates(c.head, k) && !ends.iter().any(|end| dominates(*end, k));
                blocks.clone().map(holds).collect()
            })
            .collect();
        let holds = |c: &Construct, k: usize| members[c.number][k];
        for (from, block) in function.blocks.iter().enumerate().filter(|(k, _)| reachable(*k)) {
            for &to in &block.next {
                let around = || constructs.iter().filter(|c| holds(c, from));
                // Where a way may lead out of what is around it: behind it, to the next round, or back to the head.
                let leaves = |c: &Construct| {
                    to == c.end
                        || around()
                            .any(|outer| outer.leaves() && (to == outer.end || Some(to) == outer.again))
                        || around().any(|outer| outer.again.is_some() && to == outer.head)
                };
                let right = constructs.iter().filter(|c| reachable(c.head)).all(|c| {
                    let (inside, target) = (holds(c, from), holds(c, to));
                    match (inside, target) {
                        (false, true) => to == c.head,
                        (true, false) => leaves(c),
                        (true, true) if to == c.head => {
                            c.again.is_some_and(|again| reachable(again) && dominates(again, from))
                        }
                        _ => true,
                    }
                });
                if !right {
                    return Err(damaged("a loop or a selection is not entered or left where it says"));
                }
            }
        }
        for c in constructs.iter().filter(|c| reachable(c.head)) {
            let Some(again) = c.again else { continue };
            let returns =
                function.blocks.iter().enumerate().filter(|(k, block)| {
                    reachable(*k) && block.next.contains(&c.head) && dominates(c.head, *k)
                });
            let inside = !reachable(again) || holds(c, again);
            // A round begins once.
            let mut before =
                function.blocks.iter().enumerate().filter(|(_, block)| block.next.contains(&again));
            if again != c.head && before.any(|(k, _)| reachable(k) && dominates(again, k)) {
                return Err(damaged("a loop's next round leads back to its own beginning"));
            }
            if returns.count() != usize::from(reachable(again)) || !inside {
                return Err(damaged("a loop has not one way back to its head"));
            }
        }
        Ok(())
    }

    /// What begins with a merge instruction.
    fn constructs(&self, function: &Function) -> Vec<Construct> {
        let blocks = function.blocks.iter().enumerate().filter(|(_, block)| block.end - block.begin > 2);
        let construct = |(head, block): (usize, &Block)| {
            let merge = &self.instructions[block.end - 2];
            let place = |k: usize| merge.ids.get(k).and_then(|id| function.labels.get(id)).copied();
            let switch = self.instructions[block.end - 1].op == Op::Switch;
            match merge.op {
                Op::SelectionMerge => {
                    Some(Construct { number: 0, head, end: place(0)?, again: None, switch })
                }
                Op::LoopMerge => {
                    Some(Construct { number: 0, head, end: place(0)?, again: Some(place(1)?), switch: false })
                }
                _ => None,
            }
        };
        let mut constructs: Vec<Construct> = blocks.filter_map(construct).collect();
        constructs.iter_mut().enumerate().for_each(|(number, construct)| construct.number = number);
        constructs
    }

    /// Calls have the arguments that the function takes.
    fn check_calls(&self, function: &Function, calls: &mut FxHashMap<u32, Vec<u32>>) -> Result<(), Refusal> {
        let own = self.instructions[function.begin].result.unwrap_or(0);
        let called = calls.entry(own).or_default();
        for i in self.instructions[function.begin..function.end].iter().filter(|i| i.op == Op::FunctionCall) {
            let callee = self.get(i.ids[0])?;
            let of = callee.ids.first().map(|id| self.type_of_id(*id)).transpose()?;
            let Some(Type::Function { result, parameters }) = of else {
                return Err(damaged("a call of what is no function"));
            };
            let mut arguments = Vec::new();
            for id in &i.ids[1..] {
                arguments.push(self.type_of(*id)?);
            }
            if arguments != parameters || i.result_type != Some(result) {
                return Err(damaged("a call has other arguments than its function takes"));
            }
            called.push(i.ids[0]);
        }
        Ok(())
    }
}

fn is_line(op: Op) -> bool {
    matches!(op, Op::Line | Op::NoLine)
}

fn is_terminator(op: Op) -> bool {
    matches!(
        op,
        Op::Branch | Op::BranchConditional | Op::Switch | Op::Return | Op::ReturnValue | Op::Unreachable
    )
}

/// The nearest block on every way to each; none for what is never reached.
fn dominators(blocks: &[Block]) -> Vec<Option<usize>> {
    // Blocks in the order in which a walk leaves them, last first.
    let (mut order, mut seen, mut stack) = (Vec::new(), vec![false; blocks.len()], vec![(0, 0)]);
    seen[0] = true;
    while let Some((block, next)) = stack.pop() {
        match blocks[block].next.get(next) {
            Some(&to) => {
                stack.push((block, next + 1));
                if !std::mem::replace(&mut seen[to], true) {
                    stack.push((to, 0));
                }
            }
            None => order.push(block),
        }
    }
    order.reverse();
    let mut rank = vec![usize::MAX; blocks.len()];
    order.iter().enumerate().for_each(|(place, &block)| rank[block] = place);
    let mut above: Vec<Option<usize>> = vec![None; blocks.len()];
    above[0] = Some(0);
    loop {
        let mut changed = false;
        for &block in &order {
            for &to in &blocks[block].next {
                if to == 0 {
                    continue;
                }
                let mut both = block;
                if let Some(known) = above[to] {
                    let mut other = known;
                    while both != other {
                        while rank[both] > rank[other] {
                            both = above[both].unwrap_or(0);
                        }
                        while rank[other] > rank[both] {
                            other = above[other].unwrap_or(0);
                        }
                    }
                }
                changed |= above[to] != Some(both);
                above[to] = Some(both);
            }
        }
        if !changed {
            return above;
        }
    }
}

/// Walks through calls; an error where a function comes back to itself.
fn leads_to_itself(
    function: u32,
    calls: &FxHashMap<u32, Vec<u32>>,
    path: &mut Vec<u32>,
    done: &mut FxHashSet<u32>,
) -> Result<(), Refusal> {
    if path.contains(&function) {
        return Err("has a function that calls itself".to_owned());
    }
    if !done.insert(function) {
        return Ok(());
    }
    path.push(function);
    for &called in calls.get(&function).into_iter().flatten() {
        leads_to_itself(called, calls, path, done)?;
    }
    path.pop();
    Ok(())
}
