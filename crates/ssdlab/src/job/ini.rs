//! The lines of a job file: sections, options, comments, includes, the environment.

use super::parse::ParseSource;
use crate::error::{Error, Result};
use std::rc::Rc;

/// Includes may nest this deep (as in fio).
const INCLUDE_DEPTH_MAX: u32 = 16;

/// One `option=value` line.
#[derive(Clone, Debug)]
pub struct Line {
    pub file: Rc<str>,
    pub number: u32,
    pub name: String,
    /// `None`: a bare option.
    pub value: Option<String>,
    /// It came from `[global]`.
    pub global: bool,
}

impl Line {
    /// An error at this line.
    pub fn error(&self, problem: impl Into<String>) -> Error {
        Error::Job {
            file: self.file.to_string(),
            line: self.number,
            option: self.name.clone(),
            problem: problem.into(),
        }
    }
}

/// One job section with the global options that stood before it.
#[derive(Clone, Debug)]
pub struct Section {
    pub name: String,
    pub file: Rc<str>,
    pub number: u32,
    pub lines: Vec<Line>,
}

/// A job file taken apart.
#[derive(Default)]
pub struct Sections {
    pub jobs: Vec<Section>,
    pub globals: Vec<Line>,
    /// Inside `[global]`.
    in_global: bool,
}

/// Takes `text` apart.
///
/// # Errors
/// [`Error::Job`] for a line that is neither section, option nor comment, an unreadable include
/// or an unset environment variable.
pub fn read(text: &str, source: &ParseSource) -> Result<Sections> {
    let mut sections = Sections::default();
    let mut reader = Reader { source, sections: &mut sections };
    reader.lines(text, &Rc::from(source.file.as_str()), 0)?;
    Ok(sections)
}

struct Reader<'a, 'b> {
    source: &'a ParseSource<'b>,
    sections: &'a mut Sections,
}

impl Reader<'_, '_> {
    fn lines(&mut self, text: &str, file: &Rc<str>, depth: u32) -> Result<()> {
        for (index, raw) in text.lines().enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let line = raw.split([';', '#']).next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                self.section(rest, file, number)?;
            } else if let Some(path) = line.strip_prefix("include ") {
                self.include(path.trim(), file, number, depth)?;
            } else {
                self.option(line, file, number)?;
            }
        }
        Ok(())
    }

    fn section(&mut self, rest: &str, file: &Rc<str>, number: u32) -> Result<()> {
        let name = match rest.split_once(']') {
            Some((name, "")) if !name.trim().is_empty() => name.trim(),
            _ => {
                return Err(place(file, number, &format!("[{rest}")).with(
                    "a section is a name in square brackets on a line of its own, such as [fill]",
                ));
            }
        };
        self.sections.in_global = name == "global";
        if !self.sections.in_global {
            self.sections.jobs.push(Section {
                name: name.to_string(),
                file: file.clone(),
                number,
                lines: self.sections.globals.clone(),
            });
        }
        Ok(())
    }

    fn include(&mut self, path: &str, file: &Rc<str>, number: u32, depth: u32) -> Result<()> {
        let at = place(file, number, "include");
        if depth >= INCLUDE_DEPTH_MAX {
            return Err(at.with(format!("files include each other more than {depth} deep")));
        }
        let path = self.expand(path, &at)?;
        let text = (self.source.include)(&path)
            .map_err(|e| at.with(format!("cannot read \"{path}\": {e}")))?;
        self.lines(&text, &Rc::from(path.as_str()), depth + 1)
    }

    fn option(&mut self, line: &str, file: &Rc<str>, number: u32) -> Result<()> {
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (line, None),
        };
        let at = place(file, number, name);
        let value = value.map(|v| self.expand(v, &at)).transpose()?;
        let line = Line {
            file: file.clone(),
            number,
            name: name.to_string(),
            value,
            global: self.sections.in_global,
        };
        if self.sections.in_global {
            self.sections.globals.push(line);
        } else if let Some(job) = self.sections.jobs.last_mut() {
            job.lines.push(line);
        } else {
            return Err(at.with("it stands before the first section; put [global] above it"));
        }
        Ok(())
    }

    /// Replaces `${NAME}` by the environment and `$pagesize` by 4096.
    fn expand(&self, text: &str, at: &Place) -> Result<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            out.push_str(&rest[..start]);
            let (name, behind) =
                rest[start + 2..].split_once('}').ok_or_else(|| at.with("\"${\" without \"}\""))?;
            let value =
                self.source.env.get(name).ok_or_else(|| {
                    at.with(format!("the environment variable {name} is not set"))
                })?;
            out.push_str(value);
            rest = behind;
        }
        out.push_str(rest);
        for word in ["$ncpus", "$mb_memory"] {
            if let Some(value) = self.source.env.get(word) {
                out = out.replace(word, value);
            } else if out.contains(word) {
                return Err(at.with(format!(
                    "{word} is a property of this host and means nothing to a simulated drive; \
                     write a number"
                )));
            }
        }
        Ok(out.replace("$pagesize", "4096"))
    }
}

/// Where an error is.
struct Place {
    file: String,
    line: u32,
    option: String,
}

fn place(file: &Rc<str>, line: u32, option: &str) -> Place {
    Place { file: file.to_string(), line, option: option.to_string() }
}

impl Place {
    fn with(&self, problem: impl Into<String>) -> Error {
        let (file, line, option) = (self.file.clone(), self.line, self.option.clone());
        Error::Job { file, line, option, problem: problem.into() }
    }
}
