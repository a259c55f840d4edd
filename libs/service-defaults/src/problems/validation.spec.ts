import { z } from 'zod';
import { validationProblem } from './validation';

const schema = z.object({ name: z.string() }).catchall(z.string());

describe('validationProblem', () => {
  it('lists messages by field, and those about the whole under `request`', () => {
    const nested = z.object({ items: z.array(z.number()) }).safeParse({ items: ['x'] });
    const whole = z.object({}).safeParse(1);
    expect(validationProblem(nested.error).problem.errors).toMatchObject({ 'items.0': [expect.any(String)] });
    expect(validationProblem(whole.error).problem.errors).toMatchObject({ request: [expect.any(String)] });
  });

  it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
    'reports a field named %s like any other',
    (field) => {
      const parsed = schema.safeParse(JSON.parse(`{"name":"x","${field}":1}`));
      const error =
        parsed.error ?? new z.ZodError([{ code: 'custom', path: [field], message: 'no', input: 1 }]);
      const { errors } = validationProblem(error).problem;
      expect(Object.entries(errors ?? {})).toEqual([[field, [expect.any(String)]]]);
    },
  );
});
