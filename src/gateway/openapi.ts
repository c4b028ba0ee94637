import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';

export const OPENAPI_PATH = '/v1/openapi.json';

/** What the document says before any route is added. */
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
        description: 'What agent pods and people say to the gateway. Every refusal has the form of `error`.',
      },
      components: {
        securitySchemes: {
          pod: { type: 'http', scheme: 'bearer', description: 'The projected token of an agent pod.' },
          person: {
            type: 'apiKey',
            in: 'header',
            name: 'Temper-Token',
            description: "A token of the namespace's ServiceAccount temper-people.",
          },
        },
      },
    },
  };
}
