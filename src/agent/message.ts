import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { FinishReason, MessageCall, MessageSource } from '../bus/port.ts';

export interface IncomingMessage {
  session: string;
  /** Id of the first message of the chain; the id of this message when it starts the chain. */
  rootMessage: string;
  text: string;
  /** Default `User`. */
  source?: MessageSource;
  /** Name of the agent that sent it; absent for another source. */
  from?: string;
  /** Id of the message. A redelivered message is resumed where an earlier process stopped. */
  message?: string;
  /** The message is this call: it is made, and no model is asked. */
  call?: MessageCall;
}

/** How the work on a message ended. */
export interface TurnOutcome {
  reply: string;
  finishReason: FinishReason;
  /** The reply is JSON that matches `spec.returns`. */
  format?: 'json';
  /** The requests whose decisions the turn waits for: it is not finished, and has no reply. */
  parked?: readonly string[];
}

export interface RunningAgent {
  name: string;
  namespace: string;
  spec: AgentSpec;
  policyName: string;
  level: string;
}
