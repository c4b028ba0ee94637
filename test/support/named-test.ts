import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');

/** A test that a page or a table refers to. */
export interface NamedTest {
  /** The file, relative to the root of the project. */
  readonly file: string;
  /** The title, as it stands in the source. */
  readonly name: string;
}

/** Whether the file has a test of this title. Throws when there is no such file. */
export function testExists({ file, name }: NamedTest): boolean {
  const text = readFileSync(join(ROOT, file), 'utf8').replaceAll(/\bit\(\s+/g, 'it(');
  const literals = [`'${name.replaceAll("'", "\\'")}'`, `\`${name}\``, `"${name}"`];
  return literals.some((literal) => text.includes(`it(${literal}`));
}
