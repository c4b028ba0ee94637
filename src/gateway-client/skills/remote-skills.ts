import { isTemperError } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { isCount, type JsonObject } from '../../lib/json.ts';
import { malformedResponse, requireList, requireObject, requireText } from '../../gateway-api/response-parsing.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import type { Skills } from '../../skills/port.ts';
import type { GatewayClient } from '../gateway-client.ts';

export interface RemoteSkillsOptions {
  client: GatewayClient;
  deliveryToken: () => string;
}

/** The skills of the namespace, through the gateway, in the session of the current message. */
export function remoteSkills({ client, deliveryToken }: RemoteSkillsOptions): Skills {
  const ask = async (path: string, body: object, op: CallOptions): Promise<JsonObject | undefined> => {
    try {
      const answer = await client.call({ method: 'POST', path, body: { ...body, deliveryToken: deliveryToken() }, op });
      return requireObject(answer, 'skill');
    } catch (error) {
      if (isTemperError(error, 'TEMPER_NOT_FOUND')) return undefined;
      throw error;
    }
  };
  return {
    async load(name, op) {
      const found = await ask(POD_API_PATHS.loadSkill, { name }, op);
      if (found === undefined) return undefined;
      return {
        name: requireText(found, 'name', 'skill'),
        instructions: requireText(found, 'instructions', 'skill'),
        examples: texts(found, 'examples'),
        resources: texts(found, 'resources'),
        ...sourceIn(found),
      };
    },
    async resource(name, path, offset, op) {
      const found = await ask(POD_API_PATHS.skillResource, { name, path, offset }, op);
      if (found === undefined) return undefined;
      const { next } = found;
      if (next !== undefined && !isCount(next)) throw malformedResponse('skill.next');
      return { text: requireText(found, 'text', 'skill'), ...(next === undefined ? {} : { next }), ...sourceIn(found) };
    },
  };
}

function texts(found: JsonObject, key: string): string[] {
  return requireList(found[key], `skill.${key}`).map((item) => {
    if (typeof item !== 'string') throw malformedResponse(`skill.${key}`);
    return item;
  });
}

function sourceIn(found: JsonObject): { source?: string } {
  return found['source'] === undefined ? {} : { source: requireText(found, 'source', 'skill') };
}
