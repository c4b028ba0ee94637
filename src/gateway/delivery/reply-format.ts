import { requiredValue } from '../../agent/returns/finish.ts';
import { isTemperError } from '../../lib/errors.ts';
import { parseUntrustedJson } from '../../lib/json.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { GatewayDeps } from '../deps.ts';

/** Whether the reply is JSON that matches `spec.returns` of the agent. The gateway checks it itself: the pod may claim anything. */
export function replyFormat(
  agentUid: string,
  reply: string,
  { directory }: Pick<GatewayDeps, 'directory'>,
): { format?: 'json' } {
  const returns = directory.byUid(agentUid)?.agent.spec.returns;
  if (returns === undefined) return {};
  try {
    return requiredValue(returns, createSchemaCompiler()).check(parseUntrustedJson(reply)).accepted
      ? { format: 'json' }
      : {};
  } catch (error) {
    if (error instanceof SyntaxError || isTemperError(error, 'TEMPER_MANIFEST_INVALID')) return {};
    throw error;
  }
}
