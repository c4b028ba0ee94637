/** The only origin that an agent program reaches. No name server has it. */
export const ORIGIN = 'http://temper.internal';
