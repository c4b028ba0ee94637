import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import { errorOutcome } from './message-outcome.ts';

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
