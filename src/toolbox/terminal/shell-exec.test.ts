import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aCallContext } from '../../../test/support/call-context.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { grantedEnvironment } from './environment.ts';
import type { Terminal, TerminalRequest } from './port.ts';
import { SHELL_EXEC_TOOL, shellExecTool } from './shell-exec.ts';

const context = aCallContext();

describe('shell_exec', () => {
  const schemas = createSchemaCompiler();
  const problems = (input: Json): string[] => schemas.check(SHELL_EXEC_TOOL.inputSchema)(input);
  const policy = { programs: () => ['ls'], environment: () => ['LANG'] };

  it('shell_exec asks for one program with what the policy permits', async () => {
    const asked: TerminalRequest[] = [];
    const terminal: Terminal = {
      run: (request) => {
        asked.push(request);
        return Promise.resolve({ exitCode: 0, stdout: '', stderr: '' });
      },
    };
    const tool = shellExecTool({ terminal, ...policy });
    const output = await tool.call(
      { command: 'ls', args: ['-l', 'a b'], cwd: 'data', stdin: 'x', timeoutSeconds: 5 },
      context,
    );
    assert.deepEqual(schemas.check(SHELL_EXEC_TOOL.outputSchema ?? {})(output), []);
    await tool.call({ command: 'ls' }, context);
    const caller = { agent: context.agent, session: 's-1', message: 'root', call: 'key' };
    const permitted = { programs: ['ls'], environment: ['LANG'], caller };
    assert.deepEqual(asked, [
      { program: 'ls', args: ['-l', 'a b'], folder: 'data', input: 'x', milliseconds: 5_000, ...permitted },
      { program: 'ls', args: [], folder: '.', milliseconds: 30_000, ...permitted },
    ]);
  });

  it('shell_exec refuses command lines as one text, NUL characters, and calls where no program runs', async () => {
    assert.notDeepEqual(problems({ command: 'ls', args: '-l' }), []);
    assert.notDeepEqual(problems({ command: 'x'.repeat(65) }), []);
    assert.notDeepEqual(problems({ command: 'ls', timeoutSeconds: 601 }), []);
    assert.deepEqual(problems({ command: 'ls', args: [] }), []);
    const tool = shellExecTool(policy);
    const call = async (input: Json): Promise<Json> => tool.call(input, context);
    await assert.rejects(call({ command: 'ls' }), (error) => isTemperError(error, 'TEMPER_PROGRAM_UNAVAILABLE'));
    const terminal: Terminal = { run: () => Promise.reject(new Error('not called')) };
    await assert.rejects(
      async () => shellExecTool({ terminal, ...policy }).call({ command: 'ls', args: ['a\0b'] }, context),
      (error) => isTemperError(error, 'TEMPER_TOOL_INPUT_INVALID'),
    );
  });
});

describe('the environment of a program', () => {
  it('a program gets the variables that a grant names, and never secrets or what chooses its code', () => {
    const withheld = (
      'OPENAI_API_KEY github_token DB_PASSWORD AWS_SECRET_ACCESS MY_CREDENTIALS SSH_PRIVATE PGPASSWD LD_PRELOAD LD_LIBRARY_PATH ' +
      'DYLD_INSERT_LIBRARIES PYTHONPATH NODE_PATH NODE_OPTIONS RUBYLIB PERL5LIB BASH_ENV ENV GIT_SSH_COMMAND PATH HOME TMPDIR PAGER TEMPER_HOME'
    ).split(' ');
    const environment = Object.fromEntries([...withheld, 'LANG', 'LC_ALL', 'CI'].map((name) => [name, 'value']));
    assert.deepEqual(Object.keys(grantedEnvironment(['*'], environment)), ['LANG', 'LC_ALL', 'CI']);
    assert.deepEqual(grantedEnvironment(['LC_*'], environment), { LC_ALL: 'value' });
    assert.deepEqual(grantedEnvironment(undefined, environment), {});
    assert.deepEqual(grantedEnvironment(['*'], { BIG: 'x'.repeat(9_000), ABSENT: undefined }), {});
  });
});
