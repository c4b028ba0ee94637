/**
 * The API between the egress proxy and the gateway. The bodies have the schemas of `egress-schemas.ts`; this file names types and paths only,
 * so that the proxy does not load the schema library.
 */
export type {
  EgressAuthorization,
  EgressAuthorizationRequest,
  EgressReport,
  EgressReportResult,
} from './egress-schemas.ts';

export const EGRESS_API_PATHS = {
  /** POST `EgressAuthorizationRequest`: `EgressAuthorization`. */
  authorize: '/v1/egress/authorize',
  /** POST `EgressReport`: `EgressReportResult`. */
  report: '/v1/egress/report',
} as const;
