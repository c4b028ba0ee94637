import assert from 'node:assert/strict';
import { afterEach, describe, it, mock } from 'node:test';
import { changes, processState } from './process-state.ts';

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0)) step();
});

/** Each changes the process and returns how to change it back. */
const CHANGES: readonly (readonly [name: string, change: () => () => void])[] = [
  [
    'process.env.TEMPER_TEST_LEFT',
    () => {
      process.env['TEMPER_TEST_LEFT'] = 'x';
      return () => delete process.env['TEMPER_TEST_LEFT'];
    },
  ],
  [
    'globalThis.setTimeout',
    () => {
      mock.timers.enable({ apis: ['setTimeout'] });
      return () => mock.timers.reset();
    },
  ],
  [
    'Math.random',
    () => {
      const mocked = mock.method(Math, 'random', () => 0);
      return () => mocked.mock.restore();
    },
  ],
  [
    'listeners of warning',
    () => {
      const listener = (): void => {};
      process.on('warning', listener);
      return () => process.off('warning', listener);
    },
  ],
  [
    'process.umask()',
    () => {
      const former = process.umask(0o077);
      return () => process.umask(former);
    },
  ],
  [
    'process.cwd()',
    () => {
      const former = process.cwd();
      process.chdir('/');
      return () => process.chdir(former);
    },
  ],
];

describe('the state that test files of one process share', () => {
  for (const [name, change] of CHANGES) {
    it(`a change of ${name} is found, and nothing else`, () => {
      const before = processState();
      assert.deepEqual(changes(before, processState()), []);
      undo.push(change());
      assert.ok(changes(before, processState()).includes(name), changes(before, processState()).join(', '));
      for (const step of undo.splice(0)) step();
      assert.deepEqual(changes(before, processState()), []);
    });
  }
});
