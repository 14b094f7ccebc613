//! Problems that read and write by index. Of numbers some are outside.

use tidemill::{DType, Result, Tensor};

use crate::twin::{Known, Made, Twin};

impl Twin<'_> {
    /// One of them.
    pub fn indexed(&mut self) -> Made {
        let outer = self.random.near_one_of(&[1, 3]);
        let (extent, inner) = (self.random.near_one_of(&[5, 40]), self.random.near_one_of(&[1, 4, 64]));
        let count = self.random.near_one_of(&[1, 33, 300]);
        match self.random.below(8) {
            0 => self.gather_along([outer, extent, inner], count),
            1 => self.gather_each([outer, extent, inner], count),
            2 => self.scatter_largest([outer, extent, inner], count),
            3 => self.replace([outer, extent, inner], count),
            4 => self.running([outer, extent * count, inner]),
            6 => self.add_up([outer, extent, inner], count),
            5 => self.in_order([outer * extent, count * inner]),
            _ => self.count_numbers(100 * count, extent * inner),
        }
    }

    /// Numbers up to an extent and a little beyond.
    fn numbers(&mut self, dims: &[usize], extent: usize) -> Result<(Tensor, Vec<u32>)> {
        let count: usize = dims.iter().product();
        let numbers: Vec<u32> = (0..count).map(|_| self.random.below(extent + 2) as u32).collect();
        let shape = tidemill::Shape::new(dims).expect("no more dimensions than tensors have");
        Ok((self.gpu.upload(&numbers, shape)?, numbers))
    }

    /// Slices along the middle axis.
    pub fn gather_along(&mut self, dims: [usize; 3], count: usize) -> Made {
        let [outer, extent, inner] = dims;
        let x = self.tensor(&dims)?;
        let (tensor, numbers) = self.numbers(&[count], extent)?;
        let value = self.r.gather(x.value, &tensor, 1)?;
        let of = |o: usize, n: u32, i: usize| match n as usize {
            n if n < extent => x.data[(o * extent + n) * inner + i],
            _ => 0.0,
        };
        let data = (0..outer).flat_map(|o| numbers.iter().map(move |n| (o, *n)));
        let data = data.flat_map(|(o, n)| (0..inner).map(move |i| (o, n, i)));
        let data = data.map(|(o, n, i)| of(o, n, i)).collect();
        Ok(self.known(format!("gather({dims:?}, {count})"), value, vec![outer, count, inner], data))
    }

    /// An element for each number, along the middle axis.
    pub fn gather_each(&mut self, dims: [usize; 3], count: usize) -> Made {
        let [outer, extent, inner] = dims;
        let x = self.tensor(&dims)?;
        let to = [outer, count, inner];
        let (tensor, numbers) = self.numbers(&to, extent)?;
        let value = self.r.gather_elements(x.value, &tensor, 1)?;
        let of = |(i, n): (usize, &u32)| match *n as usize {
            n if n < extent => x.data[(i / (count * inner) * extent + n) * inner + i % inner],
            _ => 0.0,
        };
        let data = numbers.iter().enumerate().map(of).collect();
        Ok(self.known(format!("gather_elements({dims:?}, {count})"), value, to.to_vec(), data))
    }

    /// Slices along the middle axis, each with what updates do to it.
    fn updated(
        &mut self,
        x: &Known,
        count: usize,
        put: fn(f32, f32) -> f32,
    ) -> Result<(Tensor, Known, Vec<f32>)> {
        let [outer, extent, inner] = [x.dims[0], x.dims[1], x.dims[2]];
        let updates = self.tensor(&[outer, count, inner])?;
        let (tensor, numbers) = self.numbers(&[count], extent)?;
        let mut data = Vec::clone(&x.data);
        for (i, update) in updates.data.iter().enumerate() {
            let number = numbers[i / inner % count] as usize;
            if number < extent {
                let at = (i / (count * inner) * extent + number) * inner + i % inner;
                data[at] = put(data[at], *update);
            }
        }
        Ok((tensor, updates, data))
    }

    /// The largest of what was there and what goes there.
    pub fn scatter_largest(&mut self, dims: [usize; 3], count: usize) -> Made {
        let x = self.tensor(&dims)?;
        let (tensor, updates, data) = self.updated(&x, count, f32::max)?;
        let value = self.r.scatter_max(x.value, &tensor, updates.value, 1)?;
        Ok(self.known(format!("scatter_max({dims:?}, {count})"), value, dims.to_vec(), data))
    }

    /// The sum of what was there and what goes there.
    pub fn add_up(&mut self, dims: [usize; 3], count: usize) -> Made {
        let x = self.tensor(&dims)?;
        let (tensor, updates, data) = self.updated(&x, count, |a, b| a + b)?;
        let value = self.r.scatter_add(x.value, &tensor, updates.value, 1)?;
        Ok(self.known(format!("scatter_add({dims:?}, {count})"), value, dims.to_vec(), data))
    }

    /// The last of what goes there.
    pub fn replace(&mut self, dims: [usize; 3], count: usize) -> Made {
        let x = self.tensor(&dims)?;
        let (tensor, updates, data) = self.updated(&x, count, |_, update| update)?;
        let value = self.r.scatter(x.value, &tensor, updates.value, 1)?;
        Ok(self.known(format!("scatter({dims:?}, {count})"), value, dims.to_vec(), data))
    }

    /// Sums along the middle axis.
    pub fn running(&mut self, dims: [usize; 3]) -> Made {
        let [_, extent, inner] = dims;
        let x = self.tensor(&dims)?;
        let value = self.r.cumsum(x.value, 1)?;
        let mut data = Vec::clone(&x.data);
        for at in 0..data.len() {
            if at / inner % extent > 0 {
                data[at] += data[at - inner];
            }
        }
        Ok(self.known(format!("cumsum({dims:?})"), value, dims.to_vec(), data))
    }

    /// Rows in order.
    pub fn in_order(&mut self, dims: [usize; 2]) -> Made {
        let x = self.tensor(&dims)?;
        let value = self.r.sort(x.value, 1)?;
        let mut data = Vec::clone(&x.data);
        data.chunks_mut(dims[1].max(1)).for_each(|row| row.sort_by(f32::total_cmp));
        Ok(self.known(format!("sort({dims:?})"), value, dims.to_vec(), data))
    }

    /// How often each number occurs.
    pub fn count_numbers(&mut self, count: usize, bins: usize) -> Made {
        let (tensor, numbers) = self.numbers(&[count], bins)?;
        let counts = self.r.bincount(&tensor, bins)?;
        let value = self.r.cast(counts, DType::F32)?;
        let mut data = vec![0.0; bins];
        numbers.iter().filter_map(|n| Some(*n as usize).filter(|n| *n < bins)).for_each(|n| data[n] += 1.0);
        Ok(self.known(format!("bincount({count}, {bins})"), value, vec![bins], data))
    }
}
