import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { plainEnvironment, ROOT } from './command.ts';

/** Writes the URL of each module that the program loads to standard error. */
const PRINT_MODULES = `
import { writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
registerHooks({ load: (url, context, next) => (writeSync(2, url + '\\n'), next(url, context)) });
`;
const NEEDED =
  /^(?:package\.json|src\/cli\/|src\/lib\/|src\/api\/(?:cluster|quantities)\.ts|src\/ledger\/usage\/usage-groups\.ts|node_modules\/commander\/)/;

describe('the help of the command line', () => {
  it('temper --help loads the descriptions of the verbs, and no library but that of the options', () => {
    const hook = `data:text/javascript,${encodeURIComponent(PRINT_MODULES)}`;
    const args = ['--disable-warning=ExperimentalWarning', '--import', hook, 'src/cli/main.ts', '--help'];
    const options = { cwd: ROOT, env: plainEnvironment(), encoding: 'utf8' } as const;
    const { stdout, stderr, status } = spawnSync(process.execPath, args, options);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /Usage: temper/);
    const root = `${pathToFileURL(ROOT).href}/`;
    const loaded = stderr.split('\n').filter((line) => line.startsWith('file:'));
    const files = loaded.map((url) => url.slice(root.length));
    assert.ok(files.includes('src/cli/main.ts'), stderr);
    // A `…-program.ts` only describes verbs.
    const verbs = /^src\/cli\/(?:run|state|tools|manifests|models|cluster\/verbs|serve)\/(?!.*-program\.ts$)/;
    assert.deepEqual(
      files.filter((file) => !NEEDED.test(file) || verbs.test(file)),
      [],
    );
  });
});
