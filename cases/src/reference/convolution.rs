//! Convolutions.

/// A convolution over the last two dimensions of `[image][channel][y][x]`.
#[derive(Clone, Debug)]
pub struct Convolution {
    /// Of the input.
    pub input: [usize; 4],
    /// `[channel of the result][channel in its group][y][x]`.
    pub weights: [usize; 4],
    /// In y and x, like all that follow.
    pub stride: [usize; 2],
    /// Zeros on each side.
    pub padding: [usize; 2],
    /// Steps between taps.
    pub dilation: [usize; 2],
    /// Of channels.
    pub groups: usize,
}

impl Convolution {
    /// The result's shape.
    pub fn result(&self) -> [usize; 4] {
        let extent = |d: usize| {
            let reach = (self.weights[d] - 1) * self.dilation[d - 2] + 1;
            (self.input[d] + 2 * self.padding[d - 2] - reach) / self.stride[d - 2] + 1
        };
        [self.input[0], self.weights[0], extent(2), extent(3)]
    }

    /// Two for each multiplication with its addition, those with padding included.
    pub fn flops(&self) -> usize {
        2 * self.result().iter().product::<usize>() * self.weights[1..].iter().product::<usize>()
    }

    /// The result.
    pub fn of(&self, x: &[f32], w: &[f32]) -> Vec<f64> {
        let [_, all_channels, height, width] = self.input;
        let [all_rows, channels, kernel_height, kernel_width] = self.weights;
        let [images, _, result_height, result_width] = self.result();
        let rows = all_rows / self.groups;
        // The input's coordinate that a tap sees, if it is not in the padding.
        let seen = |d: usize, at: usize, tap: usize, extent: usize| {
            let padded = at * self.stride[d] + tap * self.dilation[d];
            padded.checked_sub(self.padding[d]).filter(|at| *at < extent)
        };
        let mut out = Vec::new();
        for image in 0..images {
            for row in 0..all_rows {
                let first = row / rows * channels;
                for y in 0..result_height {
                    for x_at in 0..result_width {
                        let mut sum = 0.0;
                        for c in 0..channels {
                            for tap_y in 0..kernel_height {
                                let Some(from_y) = seen(0, y, tap_y, height) else { continue };
                                let line = ((image * all_channels + first + c) * height + from_y) * width;
                                let taps = ((row * channels + c) * kernel_height + tap_y) * kernel_width;
                                for tap_x in 0..kernel_width {
                                    let Some(from_x) = seen(1, x_at, tap_x, width) else { continue };
                                    sum += f64::from(x[line + from_x]) * f64::from(w[taps + tap_x]);
                                }
                            }
                        }
                        out.push(sum);
                    }
                }
            }
        }
        out
    }
}
