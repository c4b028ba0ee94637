import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { createDisclosure, type Disclosure } from './disclosure.ts';
import { ToolSearch } from './tool-search.ts';

/** Fixtures for the tests of disclosed tools. */

export function aDescriptor(name: string, changes: Partial<ToolDescriptor> = {}): ToolDescriptor {
  return {
    name,
    description: `Does ${name.replaceAll('_', ' ')}.`,
    inputSchema: { type: 'object', properties: {} },
    category: 'other',
    action: 'code:read',
    sideEffects: false,
    locality: 'Local',
    ...changes,
  };
}

export interface DisclosureSetup {
  disclosure?: AgentSpec['disclosure'];
  text?: string;
  windowTokens?: number;
}

export function aDisclosure({
  disclosure = { mode: 'Explore' },
  text = 'hello',
  windowTokens = 100_000,
}: DisclosureSetup = {}): Disclosure {
  const spec: AgentSpec = {
    trustPolicyRef: { name: 'p' },
    model: { primary: 'a/b' },
    prompt: { system: 'x' },
    ...(disclosure === undefined ? {} : { disclosure }),
  };
  const deps = { search: new ToolSearch(), contextTokens: () => windowTokens };
  const caller = { agent: 'a', namespace: 'n', session: 's', rootMessage: 'm', stack: [], origin: 'Agent' } as const;
  const made = createDisclosure(deps, spec, { caller, text, prompt: 'You test.', model: 'a/b', maxOutputTokens: 0 });
  if (made === undefined) throw new Error('the fixture has no disclosure');
  return made;
}

/** An answer of the model with one call, and the result of the call. */
export function aCall(name: string, input: object, text = '{}', isError = false): ModelMessage[] {
  // Providers number the calls of each answer from one.
  const id = 'call-1';
  return [
    { role: 'assistant', text: '', toolCalls: [{ id, name, arguments: JSON.stringify(input) }] },
    { role: 'tool', toolCallId: id, name, text, isError },
  ];
}
