import { parseDocuments } from '../../api/yaml-documents.ts';
import type { Json } from '../../lib/json.ts';
import { isUnprintable, joinsEmoji } from '../../lib/printable.ts';
import type { Report } from './finding.ts';

/** The parts of a SKILL.md. */
export interface SkillDocument {
  /** Absent when the text has none. */
  frontMatter?: Json;
  body: string;
}

const FENCE = '---';
const MAX_FRONT_MATTER = 16_384;

/** Splits and parses SKILL.md; undefined after an error was reported. */
export function parseSkillDocument(text: string, report: Report): SkillDocument | undefined {
  const lines = normalized(text).split('\n');
  if (!isReadable(lines.join('\n'), 'SKILL.md', report)) return undefined;
  if (lines[0]?.trimEnd() !== FENCE) return { body: lines.join('\n').trim() };
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === FENCE);
  if (end === -1) {
    refuse(report, 'SKILL.md', 'front-matter', 'the front matter has no end', `end it with a line ${FENCE}`);
    return undefined;
  }
  const yaml = lines.slice(1, end).join('\n');
  if (yaml.length > MAX_FRONT_MATTER) {
    const message = `the front matter has more than ${MAX_FRONT_MATTER} characters`;
    refuse(report, 'SKILL.md', 'front-matter', message, 'move the text below the front matter');
    return undefined;
  }
  const frontMatter = parseYaml(yaml, 'SKILL.md', report);
  return frontMatter === undefined
    ? undefined
    : {
        frontMatter,
        body: lines
          .slice(end + 1)
          .join('\n')
          .trim(),
      };
}

/** The value of one YAML document without aliases; undefined after an error was reported. */
export function parseYaml(text: string, file: string, report: Report): Json | undefined {
  const normal = normalized(text);
  if (!isReadable(normal, file, report)) return undefined;
  const { documents, errors } = parseDocuments(normal);
  const [error] = errors;
  if (error !== undefined) {
    const message = `line ${error.position.line} of the YAML: ${error.message}`;
    refuse(report, file, error.rule, message, error.fix);
    return undefined;
  }
  if (documents.length === 1) return documents[0]?.value;
  refuse(report, file, 'yaml-document', `the YAML has ${documents.length} documents`, 'write exactly one');
  return undefined;
}

/** The text without a byte order mark, with the line ends of Unix. */
export function normalized(text: string): string {
  return text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n');
}

/** What a reader does not see, a model still reads. */
function isReadable(text: string, file: string, report: Report): boolean {
  const hidden = hiddenCharacter(text);
  if (hidden === undefined) return true;
  refuse(report, file, 'characters', hidden, 'remove it');
  return false;
}

/** The first character that a reader does not see, in words. */
export function hiddenCharacter(text: string): string | undefined {
  const characters = Array.from(text);
  const at = characters.findIndex((character, index) => {
    const isLayout = character === '\n' || character === '\t';
    return !isLayout && isUnprintable(character.codePointAt(0) ?? 0) && !joinsEmoji(characters, index);
  });
  if (at === -1) return undefined;
  const code = (characters[at]?.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  const line = characters.slice(0, at).filter((character) => character === '\n').length + 1;
  return `line ${line} has the invisible character U+${code}`;
}

function refuse(report: Report, file: string, rule: string, message: string, fix: string): void {
  report({ level: 'error', file, rule, message, fix });
}
