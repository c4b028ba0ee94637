import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { ROOT, temper, temporaryFolder } from './command.ts';

const run = promisify(execFile);

/** Runs the bash function as readline does, and prints the replies and the options that it sets. */
const DRIVER = `
source script.bash
compopt() { printf 'compopt %s %s\\n' "$1" "$2"; }
COMP_LINE=$1 COMP_POINT=\${#1}
_temper
printf 'reply %s\\n' "\${COMPREPLY[@]}"
`;

describe('the bash completion', () => {
  it('bash completes words, values with a colon or an equals sign, and files', async () => {
    await using folder = await temporaryFolder();
    const { stdout: script } = await temper(['completion', '--shell', 'bash']);
    await writeFile(join(folder.path, 'script.bash'), script);
    await writeFile(join(folder.path, 'driver.bash'), DRIVER);
    const complete = async (line: string): Promise<string[]> => {
      const env = { ...process.env, PATH: `${join(ROOT, 'bin')}:${process.env['PATH'] ?? ''}` };
      const { stdout } = await run('bash', ['driver.bash', line], { cwd: folder.path, env });
      return stdout.trimEnd().split('\n');
    };
    assert.deepEqual(await complete('temper val'), ['reply validate']);
    assert.deepEqual(await complete('temper get agents -o '), [
      'reply text',
      'reply wide',
      'reply json',
      'reply yaml',
      'reply name',
    ]);
    assert.deepEqual(await complete('temper get agents --output=na'), ['reply name']);
    assert.deepEqual(await complete('temper policy explain --action db:q'), ['reply query']);
    assert.deepEqual(await complete('temper validate -f man'), ['compopt -o default', 'reply']);
    assert.deepEqual(await complete('temper run -f my\\ file.yaml --workspace '), ['compopt -o dirnames', 'reply']);
    assert.deepEqual(await complete('temper get nosuchkind '), ['reply']);
  });
});
