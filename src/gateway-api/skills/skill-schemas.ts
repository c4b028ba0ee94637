import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import type { ResourceText, SkillText } from '../../skills/port.ts';
import { DeliveryToken, describes } from '../schema-parts.ts';

const name = Type.String({ minLength: 1, maxLength: 253, description: 'The name of the skill.' });
const source = Type.Optional(
  Type.String({ description: 'Where it was imported from. The session has untrusted content from now on.' }),
);

export const LoadSkillRequest = Type.Object(
  { deliveryToken: DeliveryToken, name },
  { ...closed, description: 'A skill that the agent loads in the session of the delivery.' },
);
export type LoadSkillRequest = Static<typeof LoadSkillRequest>;

export const SkillResourceRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    name,
    path: Type.String({ minLength: 1, maxLength: 200, description: 'The path of the resource.' }),
    offset: Type.Integer({ minimum: 0, description: 'Where the part begins.' }),
  },
  { ...closed, description: 'A part of a resource of a skill.' },
);
export type SkillResourceRequest = Static<typeof SkillResourceRequest>;

export const LoadedSkill = describes<SkillText>()(
  Type.Object(
    {
      name: Type.String(),
      instructions: Type.String(),
      examples: Type.Unsafe<readonly string[]>(Type.Array(Type.String())),
      resources: Type.Unsafe<readonly string[]>(
        Type.Array(Type.String(), { description: 'The paths of its resources.' }),
      ),
      source,
    },
    closed,
  ),
);

export const SkillResource = describes<ResourceText>()(
  Type.Object(
    {
      text: Type.String(),
      next: Type.Optional(Type.Integer({ description: 'The offset of the next part; absent after the last one.' })),
      source,
    },
    closed,
  ),
);
