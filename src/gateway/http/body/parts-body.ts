import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { decodeParts, PARTS_TYPE } from '../../../gateway-api/brokered/parts.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { GatewayServer } from '../routes.ts';
import { assertParsable, type CountBytes, type ParseJson, readBody } from './json-body.ts';

/** Reads bodies of JSON and bytes, for the routes that accept them. The body of such a request is `{call, attachment}`. */
export function addPartsBodies(server: GatewayServer, parse: ParseJson, count: CountBytes): void {
  server.addContentTypeParser(PARTS_TYPE, async (request: FastifyRequest, payload: IncomingMessage) => {
    if (request.routeOptions.config.attachment !== true)
      throw new TemperError('TEMPER_REQUEST_INVALID', `this route reads no ${PARTS_TYPE}; send application/json`);
    const body = await readBody(request, payload, (chunk) => count(request, chunk.length));
    const parts = decodeParts(body);
    if (parts === undefined)
      throw new TemperError('TEMPER_REQUEST_INVALID', `the body is not in the form of ${PARTS_TYPE}`);
    assertParsable(request, parts.json);
    return { call: await parse(request, parts.json.toString('utf8')), attachment: parts.bytes };
  });
}
