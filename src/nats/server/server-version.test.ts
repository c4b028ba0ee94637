import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { assertServerVersion } from './server-version.ts';

describe('NATS server version', () => {
  it('assertServerVersion accepts versions from the minimum of their release line', () => {
    for (const version of [
      '2.14.5',
      '2.15.0',
      '2.15.2',
      '2.12.7',
      '2.12.30',
      '2.11.16',
      '3.0.0',
      '2.15.0-RC.1',
      'v2.16.1',
    ]) {
      assertServerVersion(version);
    }
  });
  it('assertServerVersion rejects versions below the minimum, lines without a fix, and invalid versions', () => {
    const refused = [
      '2.14.4',
      '2.13.9',
      '2.12.6',
      '2.11.15',
      '2.10.29',
      '1.99.99',
      '2.14.5-RC.1',
      '',
      '2.15',
      'x',
      '2.15.2\n',
    ];
    for (const version of refused) {
      assert.throws(
        () => assertServerVersion(version),
        (error) => isTemperError(error, 'TEMPER_BUS_UNSUPPORTED'),
        version,
      );
    }
  });
});
