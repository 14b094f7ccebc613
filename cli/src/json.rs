//! JSON with its keys in the order in which they are documented.

use serde_json::Value;

/// An object on one line.
pub(crate) fn line(fields: &[(&str, Value)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(key, value)| format!("{}:{value}", Value::from(*key))).collect();
    format!("{{{}}}", fields.join(","))
}

/// A figure with as many digits as it is worth: four significant ones.
pub(crate) fn figure(x: f64) -> Value {
    if x == 0.0 || !x.is_finite() {
        return Value::from(x);
    }
    let scale = 10f64.powi(3 - x.abs().log10().floor() as i32);
    Value::from((x * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_in_order() {
        let text = line(&[("work", "a\"b".into()), ("n", 3.into()), ("anchor", Value::Null)]);
        assert_eq!(text, r#"{"work":"a\"b","n":3,"anchor":null}"#);
    }

    #[test]
    fn figures_have_four_digits() {
        assert_eq!(figure(0.000123456).to_string(), "0.0001235");
        assert_eq!(figure(123456.0).to_string(), "123500.0");
        assert_eq!(figure(f64::NAN), Value::Null);
    }
}
