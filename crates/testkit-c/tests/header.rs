//! The header is what cbindgen writes. `JOSTLE_BLESS=1 cargo test -p jostle-testkit-c header` renews it.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let sources = ["failure", "endpoint", "measures", "lib"];
    let builder = sources.iter().fold(cbindgen::Builder::new().with_config(config), |it, name| {
        it.with_src(folder.join(format!("src/{name}.rs")))
    });
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    let path = folder.join("include/jostle_testkit.h");
    if std::env::var_os("JOSTLE_BLESS").is_some() {
        fs::write(&path, &header).unwrap();
    }
    let written = fs::read(&path).unwrap();
    assert!(written == header, "{} is not current: run with JOSTLE_BLESS=1", path.display());
}
