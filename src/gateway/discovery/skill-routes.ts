import type { FastifyRequest } from 'fastify';
import { LOAD_SKILL } from '../../agent/skills/skill-tools.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import {
  LoadedSkill,
  LoadSkillRequest,
  SkillResource,
  SkillResourceRequest,
} from '../../gateway-api/skills/skill-schemas.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { resourceText, skillText } from '../../skills/read-text.ts';
import type { Skill } from '../../skills/skill.ts';
import { authorizeDelivery } from '../delivery/authorize.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';

const MAX_BODY_BYTES = 16 * 1_024;

/** The texts of the skills of the namespace of the agent. */
export function skillRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const route = { config: { access: 'pod' as const }, bodyLimit: MAX_BODY_BYTES };
  server.post(
    POD_API_PATHS.loadSkill,
    {
      ...route,
      schema: {
        ...POD_SECURITY,
        body: LoadSkillRequest,
        summary: 'The instructions of a skill',
        response: { 200: LoadedSkill, ...ERROR_RESPONSES },
      },
    },
    async (request) => skillText(await skillFor(request, request.body, deps)),
  );
  server.post(
    POD_API_PATHS.skillResource,
    {
      ...route,
      schema: {
        ...POD_SECURITY,
        body: SkillResourceRequest,
        summary: 'A part of a resource of a skill',
        response: { 200: SkillResource, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const { path, offset } = request.body;
      return resourceText(await skillFor(request, request.body, deps), path, offset);
    },
  );
}

/** Marks the session before its pod gets an imported text, whatever the pod says about its session. Throws TEMPER_NOT_FOUND. */
async function skillFor(
  request: FastifyRequest,
  { deliveryToken, name }: LoadSkillRequest,
  deps: GatewayDeps,
): Promise<Skill> {
  const { claims } = authorizeDelivery(request, deliveryToken, deps);
  const skill = await deps.skills.find(claims.namespace, name);
  if (skill === undefined)
    throw new TemperError('TEMPER_NOT_FOUND', `the namespace has no skill "${printable(name, 80)}" with a text`);
  if (skill.source !== undefined) await deps.sessionsOf(claims.agentUid).taint(claims.session);
  await deps.recorder.used(claims, LOAD_SKILL.category);
  return skill;
}
