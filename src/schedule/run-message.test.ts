import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runMessage } from './run-message.ts';

const due = Date.parse('2026-07-03T07:00:00Z');

describe('runMessage()', () => {
  it('the text has the due time in the time zone of the schedule', () => {
    const { text } = runMessage({ message: 'Report for {{time}}.', timeZone: 'Europe/Berlin' }, due);
    assert.equal(text, 'Report for 2026-07-03T09:00:00+02:00.');
    assert.equal(runMessage({ message: '{{time}}' }, due).text, '2026-07-03T07:00:00Z');
  });

  it('each due time has a session of its own, unless the schedule names one', () => {
    assert.equal(runMessage({ message: 'x' }, due).session, 'schedule-20260703T070000Z');
    assert.equal(runMessage({ message: 'x', session: 'daily' }, due).session, 'daily');
  });

  it('the same due time has the same key', () => {
    assert.equal(runMessage({ message: 'x' }, due).key, runMessage({ message: 'y' }, due).key);
  });
});
