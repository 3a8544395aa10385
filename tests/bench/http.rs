//! A client that costs next to nothing: one connection, one request at a time, HTTP/1.1 with keep-alive.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::Result;

/// A connection to the server.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
    request: Vec<u8>,
}

impl Connection {
    /// Connects to `host:port`.
    pub(crate) fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream), address: address.to_owned(), request: Vec::new() })
    }

    /// Sends a request and reads its answer's body; an answer that is no success is an error.
    pub(crate) fn call(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Vec<u8>> {
        self.send(method, path, body)?;
        let (status, answer) = self.receive()?;
        if (200..300).contains(&status) {
            Ok(answer)
        } else {
            Err(format!("{method} {path}: {status} {}", String::from_utf8_lossy(&answer)).into())
        }
    }

    /// Sends a request.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Result<()> {
        self.request.clear();
        let (address, length) = (&self.address, body.len());
        write!(self.request, "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n")?;
        self.request.extend_from_slice(body);
        self.stream.get_mut().write_all(&self.request)?;
        Ok(())
    }

    /// Sends an array as one long body, a chunk for each piece, and reads the answer.
    pub(crate) fn post_array(&mut self, path: &str, pieces: &[&[u8]]) -> Result<()> {
        let stream = self.stream.get_mut();
        write!(stream, "POST {path} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n", self.address)?;
        for (position, piece) in pieces.iter().enumerate() {
            write!(stream, "{:x}\r\n{}", piece.len() + 1, if position == 0 { "[" } else { "," })?;
            stream.write_all(piece)?;
            stream.write_all(b"\r\n")?;
        }
        stream.write_all(b"1\r\n]\r\n0\r\n\r\n")?;
        let (status, answer) = self.receive()?;
        let refused = || format!("POST {path}: {status} {}", String::from_utf8_lossy(&answer));
        if status == 201 { Ok(()) } else { Err(refused().into()) }
    }

    /// Reads an answer: its status and its body.
    pub(crate) fn receive(&mut self) -> Result<(u16, Vec<u8>)> {
        let status = self.line()?;
        let status: u16 = status.split(' ').nth(1).ok_or("an answer without a status")?.parse()?;
        let mut length = None;
        let mut chunked = false;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse::<usize>()?);
            }
            chunked |= line.starts_with("transfer-encoding:") && line.contains("chunked");
        }
        let body = if chunked { self.chunks()? } else { self.exactly(length.unwrap_or(0))? };
        Ok((status, body))
    }

    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let length = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)?;
            body.extend(self.exactly(length)?);
            self.line()?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}
