import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';

export const OPENAPI_PATH = '/v1/openapi.json';

/** The OpenAPI document without its routes. */
export function openApiOptions(): FastifyDynamicSwaggerOptions {
  return {
    refResolver: {
      buildLocalReference: ({ $id }, _base, _fragment, index) => (typeof $id === 'string' ? $id : `schema-${index}`),
    },
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Temper gateway',
        version: 'v1',
        description: 'The API of the gateway for agent pods and users. Every error response has the form of `error`.',
      },
      components: {
        securitySchemes: {
          pod: { type: 'http', scheme: 'bearer', description: 'The projected token of an agent pod.' },
          egress: { type: 'http', scheme: 'bearer', description: 'The projected token of the egress proxy.' },
          user: {
            type: 'apiKey',
            in: 'header',
            name: 'Temper-Token',
            description: "A token of the namespace's ServiceAccount temper-users.",
          },
          peer: {
            type: 'http',
            scheme: 'bearer',
            description: 'A token of a ServiceAccount with the audience temper-a2a; behind a proxy in Temper-Token.',
          },
        },
      },
    },
  };
}
