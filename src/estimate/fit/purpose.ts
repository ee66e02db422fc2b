/** Question about a model: what somebody serves, trains or fine-tunes for. */
export const PURPOSES = ['serving', 'training', 'lora', 'qlora'] as const;

export type Purpose = (typeof PURPOSES)[number];
