import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

/** Values for the placeholders of a command, such as SESSION. */
export type CommandValues = Readonly<Record<string, string>>;

/** The words of a command of the page, which must have it as it stands, with a value for each of its placeholders. */
export type WordsOf = (command: string, values?: CommandValues) => string[];

export async function readDocumentedCommands(path: string): Promise<WordsOf> {
  const page = await readFile(path, 'utf8');
  return (command, values = {}) => {
    assert.ok(page.includes(`\n${command}`), `${path} does not show: ${command}`);
    const filled = Object.entries(values).reduce((text, [name, value]) => text.replace(name, value), command);
    return [...filled.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  };
}
