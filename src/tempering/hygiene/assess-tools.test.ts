import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Digest } from '../../lib/canonical.ts';
import { assessTools } from './assess-tools.ts';
import { type ToolTask, toToolTask } from './tool-task.ts';

const digest = (name: string): Digest => `sha256:${name.padStart(64, '0')}`;
const [A, B, C] = [digest('a'), digest('b'), digest('c')];

function tasks(count: number, endedWell: boolean, ...tools: Digest[]): ToolTask[] {
  return Array.from({ length: count }, () => ({ endedAt: 1, endedWell, tools }));
}

function harmful(all: readonly ToolTask[], limit = 20): Digest[] {
  return assessTools(all, limit)
    .filter(({ isHarmful }) => isHarmful)
    .map((assessment) => assessment.digest);
}

describe('the assessment of tools by the outcomes of tasks', () => {
  it('a tool with which every task ends badly is harmful after a few tasks, and not after three', () => {
    const others = [...tasks(30, true, B), ...tasks(2, false, B)];
    assert.deepEqual(harmful([...others, ...tasks(3, false, A)]), []);
    assert.deepEqual(harmful([...others, ...tasks(6, false, A)]), [A]);
  });

  it('the assessment has the figures of the tool and of the other tasks', () => {
    const all = [...tasks(30, true, B), ...tasks(2, false, B), ...tasks(6, false, A)];
    const found = assessTools(all, 20).find((one) => one.digest === A);
    assert.deepEqual([found?.tasks, found?.badTasks, found?.otherTasks, found?.otherBadTasks], [6, 6, 32, 2]);
  });

  it('a tool of an agent whose tasks all end badly is not harmful', () => {
    assert.deepEqual(harmful([...tasks(60, false), ...tasks(10, false, A)]), []);
  });

  it('a tool without other tasks to compare with is not harmful', () => {
    assert.deepEqual(harmful(tasks(40, false, A)), []);
  });

  it('a proven tool beside a harmful one stays, and the harmful one is found', () => {
    const all = [...tasks(20, true, A), ...tasks(8, false, A, B), ...tasks(20, true, C)];
    assert.deepEqual(harmful(all), [B]);
  });

  it('a tool for tasks that fail a little more often than others is not harmful', () => {
    const hard = [...tasks(70, true, A), ...tasks(30, false, A)];
    assert.deepEqual(harmful([...tasks(90, true), ...tasks(10, false), ...hard]), []);
  });

  it('a limit of 100 percent finds no tool harmful', () => {
    assert.deepEqual(harmful([...tasks(30, true), ...tasks(30, false, A)], 100), []);
  });
});

describe('a task as evidence for tools', () => {
  const task = { endedAt: 1, outcome: 'completed', deliveries: 1 } as const;
  const endedWell = (change: object): boolean | undefined => toToolTask({ ...task, ...change }, [A])?.endedWell;

  it('the outcome, the rating by users and repeated deliveries decide how a task ended', () => {
    assert.equal(endedWell({}), true);
    assert.equal(endedWell({ outcome: 'failed' }), false);
    assert.equal(endedWell({ outcome: 'failed', rating: 9 }), false);
    assert.equal(endedWell({ rating: 4 }), false);
    assert.equal(endedWell({ deliveries: 2 }), false);
    assert.equal(endedWell({ deliveries: 2, rating: 8 }), true);
    assert.equal(endedWell({ outcome: 'excused' }), undefined);
  });

  it('a task counts a tool once, and at most twenty tools', () => {
    const many = Array.from({ length: 30 }, (_, index) => digest(`${index}`));
    assert.deepEqual(toToolTask(task, [A, A])?.tools, [A]);
    assert.equal(toToolTask(task, many)?.tools.length, 20);
  });
});
