import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { ResumePoint } from '../session/resume.ts';
import type { CodeSessions } from './code-sessions.ts';
import { journaledSteps } from './journal.ts';
import { storedMemory, type StoredMemory } from './stored-memory.ts';

/** What the loop needs for agents in code mode. */
export interface CodeModeDeps {
  sessions: CodeSessions;
}

/** What code mode keeps while a message is processed. */
export interface CodeState {
  /** `memory` as the session stores it. */
  memory: StoredMemory;
  /** The stored items of the message, with the journals of interrupted runs. Empty for a message that was not resumed. */
  readonly resumed: readonly ModelMessage[];
  /** The tool calls that earlier attempts at the message made in runs that ended. */
  readonly steps: number;
}

/** Undefined for an agent whose model calls tools itself. */
export function openCodeState(
  spec: Pick<AgentSpec, 'invocation'>,
  items: readonly ModelMessage[],
  resumePoint: ResumePoint | undefined,
): CodeState | undefined {
  if (spec.invocation !== 'Code') return undefined;
  const resumed = resumePoint === undefined ? [] : items.slice(-resumePoint.items);
  const pending = new Set(resumePoint?.pending.map(({ id }) => id));
  return { memory: storedMemory(items), resumed, steps: journaledSteps(resumed, pending) };
}
