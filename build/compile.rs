//! Compiles kernels with shaderc.

use std::collections::BTreeMap;

use ::shaderc::{
    CompileOptions, Compiler, EnvVersion, Error, OptimizationLevel, ResolvedInclude, ShaderKind,
    SpirvVersion, TargetEnv,
};

use crate::kernels::{Module, Tree};

/// The SPIR-V of every module in their order; or every mistake, in shaderc's words. What `reused` gives is not compiled
/// again.
pub(crate) fn compile(
    tree: &Tree,
    modules: &[Module],
    reused: impl Fn(&Module) -> Option<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, Vec<String>> {
    let compiler = Compiler::new().map_err(|error| vec![error.to_string()])?;
    let mut compiled = Vec::new();
    // One slip usually breaks all variants of a kernel in the same way: each text is shown once.
    let mut mistakes = BTreeMap::<String, Vec<&str>>::new();
    for module in modules {
        match reused(module).map_or_else(|| compile_one(&compiler, tree, module), Ok) {
            Ok(bytes) => compiled.push(bytes),
            Err(text) => mistakes.entry(text).or_default().push(&module.name),
        }
    }
    if mistakes.is_empty() {
        return Ok(compiled);
    }
    Err(mistakes.into_iter().map(|(text, names)| format!("{text}\n(in {})", names.join(", "))).collect())
}

fn compile_one(compiler: &Compiler, tree: &Tree, module: &Module) -> Result<Vec<u8>, String> {
    let mut options = CompileOptions::new().map_err(|error| error.to_string())?;
    // These are what `kernels::TARGET` names.
    options.set_target_env(TargetEnv::Vulkan, EnvVersion::Vulkan1_3 as u32);
    options.set_target_spirv(SpirvVersion::V1_6);
    // Drivers optimise by themselves, after specialization. The optimiser in here would inline every function first,
    // which makes op lists of 16 steps 30 times as large.
    options.set_optimization_level(OptimizationLevel::Zero);
    options.set_warnings_as_errors();
    for (key, value) in &module.defines {
        options.add_macro_definition(key, Some(value));
    }
    options.set_include_callback(|path, _, _, _| {
        let content = tree.text(path).ok_or_else(|| format!("there is no glsl/{path}"))?.to_owned();
        Ok(ResolvedInclude { resolved_name: format!("glsl/{path}"), content })
    });
    let path = format!("{}.comp", module.kernel);
    let text = tree.text(&path).unwrap_or_default();
    let compiled = compiler.compile_into_spirv(
        text,
        ShaderKind::Compute,
        &format!("glsl/{path}"),
        "main",
        Some(&options),
    );
    match compiled {
        Ok(artifact) => Ok(artifact.as_binary_u8().to_vec()),
        Err(Error::CompilationError(_, text)) => Err(text.trim_end().to_owned()),
        Err(error) => Err(format!("glsl/{path}: {error}")),
    }
}
