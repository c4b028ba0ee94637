import type { ErrorCode } from '../../lib/error-codes.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';

/** One call of a client. */
export interface ServedCall {
  /** Aborts when the client cancels the call or leaves. */
  signal: AbortSignal;
  /** Reports to the client what happens during the call. Without effect for a client that did not ask for it. */
  report(message: string): void;
}

export interface ServedResult {
  text: string;
  isError: boolean;
  /** The output as a value, when it is an object. Required for a tool that is listed with an `outputSchema`. */
  structured?: JsonObject;
  /** The code of a failure. */
  code?: ErrorCode;
  /** The policy rule that decided about a failure. */
  rule?: string;
  /** The request that the call waits for. */
  approvalRequest?: string;
}

/** The tools that a client may call at this moment. */
export interface ServedTools {
  list(): Promise<readonly ToolDescriptor[]>;
  /** Makes one call with every check; never rejects for a call that failed. */
  call(name: string, input: JsonObject, call: ServedCall): Promise<ServedResult>;
}

interface ServedResource {
  uri: string;
  name: string;
  title: string;
  description: string;
  mimeType: string;
}

/** Texts that a client may read. */
export interface ServedResources {
  /** What the URIs have in common, as a URI template. */
  template: Pick<ServedResource, 'name' | 'description' | 'mimeType'> & { uriTemplate: string };
  /** The newest first. */
  list(): Promise<readonly ServedResource[]>;
  /** Undefined when there is no such resource. */
  read(uri: string): Promise<{ text: string; mimeType: string } | undefined>;
}

/** What one client gets. */
export interface ServedToClient {
  tools: ServedTools;
  resources?: ServedResources;
  /** The version of the server. */
  version?: string;
  /** How to use the tools, for the model of the client. */
  instructions?: string;
  /** Calls the listener when the tools may have changed; returns the function that unsubscribes it. */
  onToolsChange?: (listener: () => void) => () => void;
}
