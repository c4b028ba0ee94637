import { type Static, Type } from 'typebox';
import type { ErrorBody } from '../../gateway-api/error-schema.ts';

const errorRef = Type.Unsafe<Static<typeof ErrorBody>>({ $ref: 'Error#', description: 'Error.' });

export const POD_SECURITY = { security: [{ pod: [] }] };
export const EGRESS_SECURITY = { security: [{ egress: [] }] };
export const USER_SECURITY = { security: [{ user: [] }] };
export const PEER_SECURITY = { security: [{ peer: [] }] };

/** Error responses of every route. */
export const ERROR_RESPONSES = { '4xx': errorRef, '5xx': errorRef };
export const NoContent = Type.Null({ description: 'No change or message within the requested wait.' });
export const Done = Type.Null({ description: 'Done.' });
export const Bytes = Type.Unsafe<Buffer>({ type: 'string', format: 'binary', description: 'Bytes.' });
