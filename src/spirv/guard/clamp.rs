//! Puts clamps in front of instructions that take an index.

use rspirv::spirv::{GlslStd450Op, Op};

use super::{Module, Refusal, Type, damaged, emit, word};

impl Module {
    /// Appends an instruction, with what clamps its indices in front.
    pub(super) fn rewrite(&mut self, op: Op, instruction: &[u32], out: &mut Vec<u32>) -> Result<(), Refusal> {
        let mut changed = instruction.to_vec();
        match op {
            Op::AccessChain | Op::InBoundsAccessChain => self.clamp_chain(&mut changed, out)?,
            Op::VectorExtractDynamic => self.clamp_component(&mut changed, 3, 4, out)?,
            Op::VectorInsertDynamic => self.clamp_component(&mut changed, 3, 5, out)?,
            Op::ImageRead => self.clamp_texel(&mut changed, 3, out)?,
            Op::ImageWrite => self.clamp_texel(&mut changed, 1, out)?,
            Op::ImageTexelPointer => self.clamp_texel_pointer(&mut changed, out)?,
            _ => {}
        }
        out.extend_from_slice(&changed);
        Ok(())
    }

    fn type_of(&self, id: u32) -> Result<u32, Refusal> {
        self.values.get(&id).copied().ok_or_else(damaged)
    }

    fn clamp_chain(&mut self, chain: &mut [u32], out: &mut Vec<u32>) -> Result<(), Refusal> {
        let base = word(chain, 3)?;
        let Some(Type::Pointer { to }) = self.types.get(&self.type_of(base)?) else { return Err(damaged()) };
        let mut inside = *to;
        for place in 4..chain.len() {
            let index = chain[place];
            inside = match self.types.get(&inside) {
                Some(Type::Struct(members)) => {
                    let member = self.constants.get(&index).copied().ok_or_else(damaged)?;
                    *members.get(member as usize).ok_or_else(damaged)?
                }
                Some(&Type::Few { part, count }) => {
                    chain[place] = self.clamp_known(index, count, out)?;
                    part
                }
                Some(&Type::Array { element, length }) => {
                    chain[place] = match self.constants.get(&length) {
                        Some(&length) => self.clamp_known(index, length, out)?,
                        None => self.clamp(index, length, out)?,
                    };
                    element
                }
                Some(&Type::RuntimeArray { element }) if place == 5 => {
                    let member = self.constants.get(&chain[4]).copied().ok_or_else(damaged)?;
                    let (uint, length) = (self.uint(), self.fresh());
                    emit(out, Op::ArrayLength, &[uint, length, base, member]);
                    chain[place] = self.clamp(index, length, out)?;
                    element
                }
                _ => return Err("indexes something that has no length".to_owned()),
            };
        }
        Ok(())
    }

    fn clamp_component(
        &mut self,
        instruction: &mut [u32],
        vector: usize,
        index: usize,
        out: &mut Vec<u32>,
    ) -> Result<(), Refusal> {
        let of = self.type_of(word(instruction, vector)?)?;
        let Some(&Type::Few { count, .. }) = self.types.get(&of) else { return Err(damaged()) };
        let clamped = self.clamp_known(word(instruction, index)?, count, out)?;
        instruction[index] = clamped;
        Ok(())
    }

    /// Images other than texel buffers are never bound.
    fn clamp_texel(
        &mut self,
        instruction: &mut [u32],
        image: usize,
        out: &mut Vec<u32>,
    ) -> Result<(), Refusal> {
        let of = self.type_of(word(instruction, image)?)?;
        if matches!(self.types.get(&of), Some(Type::Texels)) {
            let coordinate = word(instruction, image + 1)?;
            instruction[image + 1] = self.clamp_by_size(instruction[image], coordinate, out)?;
        }
        Ok(())
    }

    fn clamp_texel_pointer(&mut self, instruction: &mut [u32], out: &mut Vec<u32>) -> Result<(), Refusal> {
        let image = word(instruction, 3)?;
        let Some(&Type::Pointer { to }) = self.types.get(&self.type_of(image)?) else {
            return Err(damaged());
        };
        if matches!(self.types.get(&to), Some(Type::Texels)) {
            let loaded = self.fresh();
            emit(out, Op::Load, &[to, loaded, image]);
            let coordinate = word(instruction, 4)?;
            instruction[4] = self.clamp_by_size(loaded, coordinate, out)?;
        }
        Ok(())
    }

    fn clamp_by_size(&mut self, image: u32, coordinate: u32, out: &mut Vec<u32>) -> Result<u32, Refusal> {
        self.needs_queries = true;
        let (uint, size) = (self.uint(), self.fresh());
        emit(out, Op::ImageQuerySize, &[uint, size, image]);
        self.clamp(coordinate, size, out)
    }

    /// An index below a length that is known now.
    fn clamp_known(&mut self, index: u32, length: u32, out: &mut Vec<u32>) -> Result<u32, Refusal> {
        if self.constants.get(&index).is_some_and(|&index| index < length) {
            return Ok(index);
        }
        let last = self.constant(length.saturating_sub(1));
        self.smaller(index, last, out)
    }

    /// An index below a length that the shader finds out; a binding without elements is refused when it is bound.
    fn clamp(&mut self, index: u32, length: u32, out: &mut Vec<u32>) -> Result<u32, Refusal> {
        let (uint, one) = (self.uint(), self.constant(1));
        let (glsl, some, last) = (self.glsl(), self.fresh(), self.fresh());
        emit(out, Op::ExtInst, &[uint, some, glsl, GlslStd450Op::UMax as u32, length, one]);
        emit(out, Op::ISub, &[uint, last, some, one]);
        self.smaller(index, last, out)
    }

    /// A negative index is a large one.
    fn smaller(&mut self, index: u32, last: u32, out: &mut Vec<u32>) -> Result<u32, Refusal> {
        let uint = self.uint();
        if !matches!(self.types.get(&self.type_of(index)?), Some(Type::Int { bits: 32 })) {
            return Err("has an index that is no 32-bit integer".to_owned());
        }
        let (glsl, clamped) = (self.glsl(), self.fresh());
        emit(out, Op::ExtInst, &[uint, clamped, glsl, GlslStd450Op::UMin as u32, index, last]);
        Ok(clamped)
    }

    fn uint(&mut self) -> u32 {
        if let Some(uint) = self.uint {
            return uint;
        }
        let uint = self.fresh();
        emit(&mut self.added, Op::TypeInt, &[uint, 32, 0]);
        self.uint = Some(uint);
        uint
    }

    fn glsl(&mut self) -> u32 {
        let glsl = self.glsl.unwrap_or_else(|| self.fresh());
        self.glsl = Some(glsl);
        glsl
    }

    fn constant(&mut self, value: u32) -> u32 {
        if let Some(&known) = self.added_constants.get(&value) {
            return known;
        }
        let (uint, id) = (self.uint(), self.fresh());
        emit(&mut self.added, Op::Constant, &[uint, id, value]);
        self.added_constants.insert(value, id);
        id
    }
}
