import { type Digest, digestOf } from '../../../lib/canonical.ts';
import type { ToolDescriptor } from '../../../tools/contract.ts';

/** What a pod and its gateway must agree on, for a tool of the pod whose host the gateway reaches. */
export function gatewayDefinition({ name, inputSchema, outputSchema, action, category }: ToolDescriptor): Digest {
  return digestOf({ name, inputSchema, outputSchema, action, category } as never);
}
