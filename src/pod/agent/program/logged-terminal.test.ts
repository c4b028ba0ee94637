import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callOptions } from '../../../../test/support/call-options.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isTemperError, TemperError } from '../../../lib/errors.ts';
import type { JsonObject } from '../../../lib/json.ts';
import { createLogger, type Logger } from '../../../telemetry/log.ts';
import { createSecretRedactor } from '../../../telemetry/secret-redactor.ts';
import type { Terminal, TerminalRequest } from '../../../toolbox/terminal/port.ts';
import { loggedTerminal } from './logged-terminal.ts';

const REQUEST: TerminalRequest = {
  program: 'grep',
  args: ['private-argument'],
  folder: '.',
  input: 'private-input',
  programs: ['grep'],
  environment: [],
  milliseconds: 1_000,
  caller: { agent: 'analyst', session: 's-1', message: 'root', call: 'key' },
};

function aLog(): { lines: JsonObject[]; text: () => string; log: Logger } {
  const written: string[] = [];
  const log = createLogger({
    level: 'info',
    destination: { write: (line) => written.push(line) },
    secrets: createSecretRedactor([]),
  });
  return {
    log,
    text: () => written.join(''),
    get lines() {
      return written.map((line) => JSON.parse(line) as JsonObject);
    },
  };
}

function logged(run: Terminal['run'], log: Logger): Terminal {
  return loggedTerminal({ run }, { log, clock: systemClock });
}

describe('the log of programs', () => {
  it('a program has one line about whom it ran for, how it ended and how much it wrote, and none of its words', async () => {
    const log = aLog();
    const result = { exitCode: 1, stdout: 'private-output', stderr: 'é', stdoutOmittedBytes: 100, killedProcesses: 2 };
    assert.equal(await logged(async () => result, log.log).run(REQUEST, callOptions()), result);
    const [line, ...more] = log.lines;
    assert.deepEqual(more, []);
    const { time, milliseconds, level, message, ...facts } = line ?? {};
    assert.deepEqual(facts, {
      program: 'grep',
      agent: 'analyst',
      session: 's-1',
      messageId: 'root',
      call: 'key',
      exitCode: 1,
      killedProcesses: 2,
      stdoutBytes: 114,
      stderrBytes: 2,
    });
    assert.deepEqual(
      [level, message, typeof time, typeof milliseconds],
      ['info', 'a program ended', 'string', 'number'],
    );
    assert.doesNotMatch(log.text(), /private-/);
  });

  it('a program that could not run has a line with the code, and the call fails with its own error', async () => {
    const log = aLog();
    const failing = logged(async () => {
      throw new TemperError('TEMPER_PROGRAM_NOT_FOUND', 'no private-program');
    }, log.log);
    await assert.rejects(failing.run(REQUEST, callOptions()), (error) =>
      isTemperError(error, 'TEMPER_PROGRAM_NOT_FOUND'),
    );
    assert.equal(log.lines[0]?.['code'], 'TEMPER_PROGRAM_NOT_FOUND');
    assert.doesNotMatch(log.text(), /private-/);
  });

  it('a log that cannot be written changes nothing for the call', async () => {
    const broken = createLogger({
      level: 'info',
      destination: {
        write: () => {
          throw new Error('the disk is full');
        },
      },
      secrets: createSecretRedactor([]),
    });
    assert.deepEqual(await logged(async () => ({ exitCode: 0 }), broken).run(REQUEST, callOptions()), { exitCode: 0 });
  });
});
