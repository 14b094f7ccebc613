//! What compilers tell of a kernel beside its instructions. Each calls things by its own names. Pure.

/// A compiler whose statistics and assembly are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compiler {
    /// Mesa's for AMD.
    Radv,
    /// Mesa's for Intel.
    Anv,
}

/// A kernel's statistics, by one set of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Statistics {
    /// AMD: vector registers. Intel: registers of 32 bytes that are live at once.
    pub(crate) registers: u64,
    /// AMD: registers of both kinds that went to memory. Intel: how often one does.
    pub(crate) spills: u64,
    /// Bytes of memory for what found no register: of an invocation, on Intel of a thread.
    pub(crate) scratch: u64,
    /// Bytes of shared memory of a workgroup.
    pub(crate) shared: u64,
    /// AMD: subgroups that a SIMD can hold. Intel, which always holds the same number of threads: invocations of one.
    pub(crate) occupancy: u64,
    /// Invocations of a subgroup, if the compiler tells of them.
    pub(crate) lanes: Option<u64>,
}

impl Compiler {
    /// Finds it by how a driver calls itself.
    pub(crate) fn of(driver: &str) -> Option<Compiler> {
        if driver.starts_with("radv") {
            Some(Compiler::Radv)
        } else if driver.starts_with("Intel open-source Mesa") {
            Some(Compiler::Anv)
        } else {
            None
        }
    }

    /// Who makes what it compiles for.
    pub(crate) fn vendor(self) -> &'static str {
        match self {
            Compiler::Radv => "AMD",
            Compiler::Anv => "Intel",
        }
    }

    /// Reads what the driver told; the name of what is not there, with the names that are.
    pub(crate) fn read(self, told: &[(String, f64)]) -> Result<Statistics, String> {
        let of = |name: &str| {
            let found = told.iter().find(|(known, _)| known == name);
            let there = || told.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let missing = || format!("the driver has no statistic `{name}`, but {}", there());
            found.map(|(_, value)| *value as u64).ok_or_else(missing)
        };
        Ok(match self {
            Compiler::Radv => Statistics {
                registers: of("VGPRs")?,
                spills: of("Spilled SGPRs")? + of("Spilled VGPRs")?,
                scratch: of("Scratch size")?,
                shared: of("LDS size")?,
                occupancy: of("Subgroups per SIMD")?,
                lanes: None,
            },
            Compiler::Anv => Statistics {
                registers: of("Max live registers")?,
                spills: of("Spill Count")?,
                scratch: of("Scratch Memory Size")?,
                shared: of("Workgroup Memory Size")?,
                occupancy: of("Max dispatch width")?,
                lanes: Some(of("Max dispatch width")?),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pairs: &[(&str, f64)]) -> Vec<(String, f64)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn radv_tells_of_registers_and_waves() {
        let told = told(&[
            ("Driver pipeline hash", 1.0),
            ("SGPRs", 128.0),
            ("VGPRs", 120.0),
            ("Spilled SGPRs", 2.0),
            ("Spilled VGPRs", 3.0),
            ("Code size", 9000.0),
            ("LDS size", 16896.0),
            ("Scratch size", 64.0),
            ("Subgroups per SIMD", 8.0),
        ]);
        let wanted =
            Statistics { registers: 120, spills: 5, scratch: 64, shared: 16896, occupancy: 8, lanes: None };
        assert_eq!(Compiler::Radv.read(&told), Ok(wanted));
    }

    /// The tile of 128 x 128 for Tiger Lake, by Mesa 25.0.7.
    #[test]
    fn anv_tells_of_live_registers_and_the_width() {
        let told = told(&[
            ("Instruction Count", 3319.0),
            ("SEND Count", 104.0),
            ("Loop Count", 1.0),
            ("Cycle Count", 138_362.0),
            ("Spill Count", 150.0),
            ("Fill Count", 156.0),
            ("Scratch Memory Size", 4096.0),
            ("Max dispatch width", 8.0),
            ("Max live registers", 205.0),
            ("Workgroup Memory Size", 16896.0),
            ("Non SSA regs after NIR", 2010.0),
        ]);
        let wanted = Statistics {
            registers: 205,
            spills: 150,
            scratch: 4096,
            shared: 16896,
            occupancy: 8,
            lanes: Some(8),
        };
        assert_eq!(Compiler::Anv.read(&told), Ok(wanted));
    }

    #[test]
    fn what_is_missing_is_named() {
        let refused = Compiler::Anv.read(&told(&[("Spill Count", 0.0)])).unwrap_err();
        assert_eq!(refused, "the driver has no statistic `Max live registers`, but Spill Count");
    }

    #[test]
    fn drivers_are_known_by_their_own_names() {
        assert_eq!(Compiler::of("radv Mesa 22.3.6"), Some(Compiler::Radv));
        let anv = Compiler::of("Intel open-source Mesa driver Mesa 25.0.7-2~bpo12+1");
        assert_eq!((anv, anv.map(Compiler::vendor)), (Some(Compiler::Anv), Some("Intel")));
        assert_eq!(Compiler::of("llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"), None);
    }
}
