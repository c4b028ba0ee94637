import type { Digest } from '../../lib/canonical.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { AgentState } from '../agent-state.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';

/** The message in which a call is made, and the state of its agent. */
export interface CallingMessage {
  claims: DeliveryTokenClaims;
  state: AgentState;
}

/** A tool that the gateway executes for agents. */
export interface BrokeredTool {
  readonly descriptor: ToolDescriptor;
  /** Of the descriptor and of what executes it: a call that was decided for another definition is refused. */
  readonly definition: Digest;
  /** What a call does beyond being called. Throws TEMPER_TOOL_INPUT_INVALID and TEMPER_CONNECTION_DENIED. */
  requests(input: JsonObject): readonly PolicyRequest[];
  /** Executes a call that was checked and permitted. The attachment is what the pod says. Throws TemperError; the text of the error may be untrusted. */
  execute(input: JsonObject, message: CallingMessage, op: CallOptions, attachment?: Buffer): Promise<Json>;
}

/** The brokered tools of each namespace. Names are unique. */
export interface BrokeredTools {
  /** None has the name of a tool in the pod. */
  list(namespace: string): readonly BrokeredTool[];
  /** Also the part of a tool in the pod that needs a credential of this gateway. */
  find(namespace: string, name: string): BrokeredTool | undefined;
}

/** The brokered tools of a gateway, and what they are executed with. */
export interface AllBrokeredTools extends BrokeredTools {
  /** Those of `list` that no object of the namespace describes: of services of the platform. */
  services(namespace: string): readonly BrokeredTool[];
  /** Whether Capabilities of the namespace may name the connection. */
  hasConnection(namespace: string, name: string): boolean;
}

export const NO_BROKERED_TOOLS: BrokeredTools = { list: () => [], find: () => undefined };
