import type { AgentSpec } from '../api/v1alpha1/agent.ts';

export interface IncomingMessage {
  session: string;
  /** Id of the message that began it all, this one or the one it came from. */
  rootMessage: string;
  text: string;
  /** Id of the delivery. A message that is delivered again goes on where the work on it was lost. */
  message?: string;
}

export interface RunningAgent {
  name: string;
  namespace: string;
  spec: AgentSpec;
  policyName: string;
  level: string;
}
