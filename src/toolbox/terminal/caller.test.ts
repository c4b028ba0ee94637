import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ProgramRequest } from '../../sandbox/terminal/port.ts';
import { callOptions } from '../../../test/support/call-options.ts';
import { callerEnvironment, programCaller } from './caller.ts';
import { createLocalTerminal, parseTerminalRequest } from './local-terminal.ts';
import type { TerminalRequest } from './port.ts';

const CALLER = { agent: 'analyst', session: 's-1', message: 'root', call: 'key' };
const REQUEST: TerminalRequest = {
  program: 'ls',
  args: [],
  folder: '.',
  programs: ['ls'],
  environment: ['TEMPER_*', 'LANG'],
  milliseconds: 1_000,
};

describe('the call of a program', () => {
  let workspace = '';
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-caller-'));
  });
  after(() => rm(workspace, { recursive: true, force: true }));

  async function environmentOf(request: TerminalRequest): Promise<ProgramRequest['environment']> {
    const asked: ProgramRequest[] = [];
    const empty = { text: '', bytes: 0, omitted: 0 };
    const terminal = createLocalTerminal({
      workspace,
      environment: { LANG: 'C', TEMPER_AGENT: 'another', TEMPER_SECRET: 'x' },
      runner: {
        run: async (program) => {
          asked.push(program);
          return { exitCode: 0, left: 0, stdout: empty, stderr: empty };
        },
      },
    });
    await terminal.run(request, callOptions());
    return asked[0]?.environment ?? {};
  }

  it('a program has the identifiers of its call as variables, which no grant gives or replaces', async () => {
    assert.deepEqual(await environmentOf({ ...REQUEST, caller: CALLER }), {
      LANG: 'C',
      TEMPER_AGENT: 'analyst',
      TEMPER_SESSION: 's-1',
      TEMPER_MESSAGE: 'root',
      TEMPER_CALL: 'key',
    });
    assert.deepEqual(await environmentOf(REQUEST), { LANG: 'C' });
  });

  it('a request keeps its caller on the way to another container, and loses one that is malformed', () => {
    const { caller: _none, ...plain } = REQUEST;
    assert.deepEqual(parseTerminalRequest({ ...plain, caller: CALLER }), { ...plain, caller: CALLER });
    for (const caller of [{ ...CALLER, session: '' }, { ...CALLER, call: 'a\nb' }, { agent: 'a' }, 'x', null]) {
      assert.deepEqual(parseTerminalRequest({ ...plain, caller }), REQUEST);
    }
  });

  it('an identifier that is long or not printable is no variable, and a long key of a call is a digest', () => {
    const { TEMPER_SESSION, TEMPER_MESSAGE, ...rest } = callerEnvironment({
      ...CALLER,
      session: 'x'.repeat(254),
      message: '\u001b[2J',
    });
    assert.deepEqual([TEMPER_SESSION, TEMPER_MESSAGE], [undefined, undefined]);
    assert.deepEqual(Object.keys(rest), ['TEMPER_AGENT', 'TEMPER_CALL']);
    const op = { ...callOptions(), key: 'k'.repeat(1_000) };
    const context = { agent: 'a', namespace: 'n', session: 's', rootMessage: 'm', stack: [], origin: 'Agent' as const };
    const { call } = programCaller({ ...context, op, invoke: () => Promise.reject(new Error('not called')) });
    assert.match(call, /^sha256:[0-9a-f]{64}$/);
  });
});
