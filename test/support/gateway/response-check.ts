import { Stream } from 'node:stream';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { RouteModule } from '../../../src/gateway/http/routes.ts';

/**
 * Fails every request whose response does not match the schema of its route, so that each test of a gateway also holds the API to its
 * description.
 */
export const checkResponses: RouteModule = (server) => {
  const compiled = new Map<TSchema, ReturnType<typeof Compile>>();
  server.addHook('preSerialization', async (request, { statusCode }, payload) => {
    const schemas = request.routeOptions.schema?.response as Record<string, TSchema> | undefined;
    const schema = schemas?.[statusCode];
    if (statusCode >= 400 || payload instanceof Stream) return payload;
    const route = `${request.method} ${request.routeOptions.url}`;
    if (schema === undefined) throw new Error(`${route} describes no response ${statusCode}`);
    const check = compiled.get(schema) ?? Compile(schema);
    compiled.set(schema, check);
    const received: unknown = JSON.parse(JSON.stringify(payload));
    const [violation] = check.Errors(received);
    if (violation === undefined) return payload;
    throw new Error(`${route} responds with ${violation.instancePath || '/'} that ${violation.message}`);
  });
};
