/** Connections of one report: with the longest delivery tokens they are within the limit of a body. */
export const MAX_REPORTED_CONNECTIONS = 128;
