import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { changes, type ProcessState, processState } from './process-state.ts';

/**
 * Runs test files one after the other in this process, each as a suite with its path as name. Hooks of a file apply to this file only.
 * The name of the file that runs is in `progress`, also when the process ends without a word.
 */
export async function runGroup(files: readonly string[], progress: string): Promise<void> {
  for (const file of files) {
    const name = relative(process.cwd(), file);
    writeFileSync(progress, name);
    let before: ProcessState | undefined;
    await describe(name, async () => {
      // The first suite has installed the listeners of the test runner.
      before = processState();
      await load(file, name);
    });
    const left = before === undefined ? [] : changes(before, processState());
    if (left.length > 0) reportLeftState(name, left);
  }
}

/** An error while a file loads is a failed test, so that the closing lines count it. */
async function load(file: string, name: string): Promise<void> {
  try {
    await import(pathToFileURL(file).href);
  } catch (error) {
    it(`${name} loads`, () => {
      throw error;
    });
  }
}

function reportLeftState(name: string, left: readonly string[]): void {
  it(`${name} leaves its process as it was`, () => {
    const shown = left.slice(0, 20).join(', ');
    throw new Error(`${name} changed ${shown}, which the files after it in this process share; restore it in a hook`);
  });
}
