import { Code } from '../../ui/copy.tsx'
import { Card } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'

export function VerifyCard() {
  return (
    <Card title="Verify webhooks">
      <p className="mb-4 text-soft">
        <code className="font-mono text-xs text-ink">X-Api-Signature</code> is the HMAC-SHA256 of the body in lower-case
        hex. Compute it over the bytes of the body as received, before parsing. Respond with 2xx within 15 seconds.
      </p>
      <Tabs
        label="Languages"
        tabs={verifySnippets.map(({ name, text }) => ({ name, children: <Code label={name} text={text} /> }))}
      />
    </Card>
  )
}

/** Receivers that read the secret from WEBHOOK_SECRET and respond with 401 to a wrong signature. */
const verifySnippets = [
  {
    name: 'Node',
    text: `import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)

  const expected = createHmac('sha256', process.env.WEBHOOK_SECRET).update(body).digest()
  const given = Buffer.from(request.headers['x-api-signature'] ?? '', 'hex')
  const isGenuine = given.length === expected.length && timingSafeEqual(given, expected)
  if (!isGenuine) return response.writeHead(401).end()

  response.writeHead(204).end()
  const { id, status, signals } = JSON.parse(body)
  console.log(id, status, signals)
}).listen(9000)`,
  },
  {
    name: 'Python',
    text: `import hashlib, hmac, json, os
from http.server import BaseHTTPRequestHandler, HTTPServer

SECRET = os.environ["WEBHOOK_SECRET"].encode()

class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        expected = hmac.new(SECRET, body, hashlib.sha256).hexdigest()
        given = self.headers.get("X-Api-Signature", "")
        is_genuine = hmac.compare_digest(expected.encode(), given.encode())
        self.send_response(204 if is_genuine else 401)
        self.end_headers()
        if is_genuine:
            result = json.loads(body)
            print(result["id"], result["status"], result["signals"])

HTTPServer(("", 9000), Receiver).serve_forever()`,
  },
  {
    name: 'Go',
    text: `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log"
	"net/http"
	"os"
)

func receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	mac := hmac.New(sha256.New, []byte(os.Getenv("WEBHOOK_SECRET")))
	mac.Write(body)
	given, _ := hex.DecodeString(r.Header.Get("X-Api-Signature"))
	if !hmac.Equal(given, mac.Sum(nil)) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusNoContent)
	log.Printf("%s", body)
}

func main() {
	http.HandleFunc("/", receive)
	log.Fatal(http.ListenAndServe(":9000", nil))
}`,
  },
  {
    name: 'PHP',
    text: `<?php
$body = file_get_contents('php://input');
$expected = hash_hmac('sha256', $body, getenv('WEBHOOK_SECRET'));
$given = $_SERVER['HTTP_X_API_SIGNATURE'] ?? '';

if (!hash_equals($expected, $given)) {
    http_response_code(401);
    exit;
}

http_response_code(204);
$result = json_decode($body, true);
error_log($result['id'] . ' ' . $result['status']);`,
  },
  {
    name: 'Shell',
    text: `# body.json contains the body as received, $SIGNATURE the header.
expected=$(openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" -r body.json | cut -d ' ' -f 1)
[ "$expected" = "$SIGNATURE" ] && echo genuine || echo forged`,
  },
]
