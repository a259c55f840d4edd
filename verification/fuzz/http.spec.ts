import { parseResponse } from './http';

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');

describe('parseResponse', () => {
  it('returns null until the body is complete', () => {
    const whole = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello';
    expect(parseResponse(bytes(whole.slice(0, -1)), false, false)).toBeNull();
    expect(parseResponse(bytes(whole), false, false)).toMatchObject({
      status: 200,
      body: 'hello',
      closes: false,
    });
  });

  it('joins chunks', () => {
    const response = parseResponse(
      bytes('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'),
      false,
      false,
    );
    expect(response?.body).toBe('abcde');
  });

  it('expects no body after HEAD, 204 and 304', () => {
    expect(parseResponse(bytes('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'), true, false)?.body).toBe('');
    expect(parseResponse(bytes('HTTP/1.1 304 Not Modified\r\n\r\n'), false, false)?.status).toBe(304);
  });

  it('skips interim responses', () => {
    const text = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
    expect(parseResponse(bytes(text), false, false)).toMatchObject({ status: 200, length: text.length });
  });

  it('reads a body without a length up to the end of the connection', () => {
    const text = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nno';
    expect(parseResponse(bytes(text), false, false)).toBeNull();
    expect(parseResponse(bytes(text), false, true)).toMatchObject({ body: 'no', closes: true });
  });

  it('refuses a response that is not HTTP', () => {
    expect(() => parseResponse(bytes('220 mail\r\n\r\n'), false, false)).toThrow('not an HTTP response');
  });
});
