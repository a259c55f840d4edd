import { holdsNul } from './request-guards';

describe('holdsNul', () => {
  it.each<unknown>(['a\u0000', { a: ['b', { c: '\u0000' }] }, { 'a\u0000': 1 }, [['\u0000']]])(
    'finds it in %j',
    (body) => {
      expect(holdsNul(body)).toBe(true);
    },
  );

  it.each<unknown>([undefined, null, 0, '', '\\u0000', { a: 'b', c: [null, 1, true] }])(
    'finds none in %j',
    (body) => {
      expect(holdsNul(body)).toBe(false);
    },
  );
});
