//! What class of drive a rig stands for: what its maker built it for, on which promises of a data sheet depend.

use super::Rig;
use crate::error::Result;
use crate::registry::{Entry, Registry};

/// The classes that a rig may say.
pub const CLASSES: Registry<()> = Registry {
    what: "class of drive",
    entries: &[
        Entry::known("client", "sold for PCs and notebooks", ()),
        Entry::known("oem", "made for makers of PCs and notebooks, a client drive else", ()),
        Entry::known("enterprise", "made for servers", ()),
        Entry::known("data-centre", "made for servers of large operators", ()),
    ],
};

/// The class that a rig file names.
///
/// # Errors
/// [`crate::Error::Unknown`] where there is none called so.
pub(super) fn named(name: &str) -> Result<Option<&'static str>> {
    if name.is_empty() {
        return Ok(None);
    }
    CLASSES.find(name).map(|class| Some(class.name))
}

/// The class of what is made of these: theirs, if they are all of one.
pub(super) fn shared<'r>(mut rigs: impl Iterator<Item = &'r Rig>) -> Option<&'static str> {
    let first = rigs.next()?.class?;
    rigs.all(|rig| rig.class == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rig(class: &str) -> Result<Rig> {
        let null = "[device]\nkind = \"null\"\ncapacity = \"1MiB\"\n";
        Rig::parse(&format!("{class}{null}"), "my.toml")
    }

    #[test]
    fn a_class_is_read_written_and_that_of_all_members_that_of_an_array() {
        let client = rig("class = \"client\"\n").unwrap();
        assert_eq!(client.class, Some("client"));
        for text in [client.write(), client.to_toml()] {
            assert_eq!(Rig::parse(&text, "again").unwrap().class, Some("client"), "{text}");
        }
        let unknown = rig("").unwrap();
        assert_eq!(unknown.class, None);
        let pair = |other: &Rig| {
            let members = [("members", vec![&client, other])];
            Rig::wrap("array", toml::Table::new(), &members).unwrap().class
        };
        assert_eq!(pair(&client.clone()), Some("client"));
        assert_eq!(pair(&unknown), None);
        assert_eq!(client.identity(), unknown.identity());
    }

    #[test]
    fn a_class_that_is_none_is_refused_with_those_that_are() {
        let said = |class| rig(class).unwrap_err().to_string();
        let clint = said("class = \"clint\"\n");
        assert!(clint.starts_with("my.toml: class"), "{clint}");
        assert!(clint.contains("did you mean \"client\"?"), "{clint}");
        assert!(said("class = 3\n").contains("class: found 3, expected a text"));
    }
}
