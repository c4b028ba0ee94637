import type { ImportedFile } from '../../interop/openfang/import-files.ts';
import { type ImportedKey, KEY_RESULTS, type KeyResult } from '../../interop/openfang/keys/import-log.ts';
import { printable } from '../../lib/printable.ts';
import { type Block, foreign, heading, type Inline, paragraph, warning } from '../../review/page/document.ts';
import { renderMarkdown } from '../../review/render/markdown.ts';
import { table } from '../table.ts';

const MAX_NOTE = 400;

const TITLES: Readonly<Record<KeyResult, string>> = {
  Imported: 'Imported',
  Changed: 'Imported with a change',
  NoEffectYet: 'Imported, without effect yet',
  NotImported: 'Not imported',
  Refused: 'Refused',
  Unknown: 'Unknown keys',
};

type KeyCounts = Readonly<Record<KeyResult, number>>;

function countKeys(keys: readonly ImportedKey[]): KeyCounts {
  const counts = KEY_RESULTS.map((result) => [result, keys.filter((key) => key.result === result).length]);
  return Object.fromEntries(counts) as Record<KeyResult, number>;
}

/** The report of one file as a JSON document. */
export function reportData(file: ImportedFile, manifest: string): object {
  const { source, name, agent, keys, problems } = file;
  return {
    source,
    agent: name,
    result: agent === undefined ? 'Refused' : 'Imported',
    ...(agent === undefined ? {} : { manifest }),
    problems,
    counts: countKeys(keys),
    keys,
  };
}

/** The report of one file for a terminal. */
export function reportText(file: ImportedFile, manifest: string): string {
  const { source, agent, keys, problems } = file;
  const head = `${printable(source, 400)} -> ${agent === undefined ? 'refused' : manifest}\n`;
  const reasons = problems.map((problem) => `  ${printable(problem, MAX_NOTE)}\n`);
  const rows = keys.map(({ key, result, field = '', note = '' }) => [key, result, field, note]);
  const body = rows.length === 0 ? '' : table(['KEY', 'RESULT', 'FIELD', 'NOTE'], rows, MAX_NOTE);
  return `${[head, ...reasons].join('')}${body}\n`;
}

/** The report of one file as Markdown. Texts of the file are only in code spans. */
export function reportMarkdown(file: ImportedFile, manifest: string): string {
  const { source, name, agent, keys, problems } = file;
  return renderMarkdown([
    heading(1, 'Import of ', foreign(name)),
    paragraph(
      'From ',
      foreign(source),
      agent === undefined ? '. The file is refused.' : ' to ',
      ...(agent === undefined ? [] : [foreign(manifest)]),
    ),
    ...problems.map((problem) => warning(foreign(problem))),
    ...KEY_RESULTS.flatMap((result) =>
      sectionOf(
        result,
        keys.filter((key) => key.result === result),
      ),
    ),
  ]);
}

function sectionOf(result: KeyResult, keys: readonly ImportedKey[]): Block[] {
  if (keys.length === 0) return [];
  return [heading(2, TITLES[result]), { type: 'list', items: keys.map(itemOf) }];
}

function itemOf({ key, value, field, note }: ImportedKey): Inline[] {
  return [
    foreign(key),
    ...(value === undefined ? [] : [' = ', foreign(value)]),
    ...(field === undefined ? [] : [' → ', foreign(field)]),
    ...(note === undefined ? [] : [': ', foreign(note)]),
  ];
}
