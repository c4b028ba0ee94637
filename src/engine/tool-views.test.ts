import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { aSharedTool } from '../tempering/tempering.testing.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import { createSchemaCompiler } from '../tools/json-schema/compiler.ts';
import { deniedHostCalls } from '../tools/host/host-calls.ts';
import { createToolViews } from './tool-views.ts';

const nothing = (): Promise<never> => Promise.reject(new Error('no tool runs in this test'));

function aChain(name: string, calls: string): RegisteredTool {
  const pin = `${calls}@sha256:${'0'.repeat(64)}`;
  const steps = [{ name: 'one', tool: pin, inputMapping: '{}' }];
  return aSharedTool(name, { implementation: { mode: 'Compose', steps } });
}

describe('tool views', () => {
  it('a view lists composed tools whose pinned names now refer to each other', () => {
    const registered = [aChain('first', 'second'), aChain('second', 'first'), aChain('own', 'own')];
    const view = createToolViews({
      tools: { resolve: () => registered, onChange: () => () => undefined, drop: nothing, closeSession: nothing },
      builtIn: [],
      forged: {
        sandbox: { run: nothing },
        clock: systemClock,
        schemas: createSchemaCompiler(),
        hostCalls: () => deniedHostCalls,
      },
    })({ agent: 'analyst', namespace: 'team-a', session: 's-1' });
    assert.deepEqual(
      view.list().map(({ name, sideEffects }) => [name, sideEffects]),
      [
        ['first', true],
        ['second', true],
        ['own', true],
      ],
    );
  });
});
