import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import { callErrorOutcome, errorOutcome, loggedError } from './message-outcome.ts';

describe('errorOutcome', () => {
  it('a transient failure of a model provider is retried, and a permanent one becomes the reply', () => {
    const endOf = (code: ErrorCode) => errorOutcome(new TemperError(code, 'it failed')).end;
    for (const code of ['TEMPER_MODEL_UNREACHABLE', 'TEMPER_MODEL_OVERLOADED', 'TEMPER_MODEL_TIMEOUT'] as const) {
      assert.equal(endOf(code), 'retry', code);
    }
    for (const code of ['TEMPER_MODEL_UNAUTHORIZED', 'TEMPER_QUOTA_EXCEEDED'] as const) {
      assert.equal(endOf(code), 'answer', code);
    }
  });
});

describe('the log line about a message that failed', () => {
  it('an error that becomes the reply is logged by its code, without what it quotes of a program or a tool', () => {
    const quoted = new TemperError('TEMPER_TOOL_FAILED', '"find" answered HTTP 500: the row of Ada', {
      cause: new Error('the row of Ada'),
    });
    assert.deepEqual(loggedError(quoted, callErrorOutcome(quoted)), { code: 'TEMPER_TOOL_FAILED', end: 'answer' });
    const program = new TemperError('TEMPER_ACP_AGENT_FAILED', 'its standard error begins with: the row of Ada');
    assert.deepEqual(loggedError(program, errorOutcome(program)), { code: program.code, end: 'answer' });
  });

  it('an error of Temper itself, and one that is retried, is logged as it is', () => {
    for (const error of [new Error('a defect'), new TemperError('TEMPER_MODEL_TIMEOUT', 'no answer')])
      assert.deepEqual(loggedError(error, errorOutcome(error)), { error, end: 'retry' });
  });
});
