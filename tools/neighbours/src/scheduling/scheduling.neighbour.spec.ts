import { republishedId } from './scheduling.neighbour';

describe('republishedId', () => {
  it('is a UUID, the same for one message every time, and different for different messages', () => {
    const id = republishedId('0b8f3a52-6c1e-4c64-9d0b-0c2a6f9f2a11');
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(republishedId('0b8f3a52-6c1e-4c64-9d0b-0c2a6f9f2a11')).toBe(id);
    expect(republishedId('0b8f3a52-6c1e-4c64-9d0b-0c2a6f9f2a12')).not.toBe(id);
  });
});
