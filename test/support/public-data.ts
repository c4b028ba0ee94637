import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

/** Data of other projects, beside the checkout: present in the build, absent on most machines of users. */
const FOLDER = resolve(import.meta.dirname, '../../../shared/data');

export interface PublicData {
  readonly file: string;
  readonly present: boolean;
  /** For the options of a test: the reason to skip it. In continuous integration nothing is skipped, so the test fails. */
  readonly skip: string | false;
}

/** One file of the public data, such as `forge/humaneval-x-js.jsonl`. */
export function publicData(name: string, environment: NodeJS.ProcessEnv = process.env): PublicData {
  const file = resolve(FOLDER, name);
  const present = existsSync(file);
  return { file, present, skip: present || environment['CI'] ? false : `${file} is absent` };
}
