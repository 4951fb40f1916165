//! Server and client of one file over QUIC, as jostle's recipe `s2n-quic` starts them. They speak
//! HTTP/0.9 over QUIC (`hq-interop`), as the programs of the QUIC interoperability runner do: a
//! line "GET /name" on a stream, and the bytes of the file in answer.

mod log;
mod options;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic, Endpoint};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Client, Connection, Server};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

use crate::options::Options;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const PROTOCOLS: [&str; 1] = ["hq-interop"];
/// One of the names in the certificate.
const SERVER_NAME: &str = "jostle";
/// Nobody asks for more than a name.
const MAX_REQUEST_BYTES: usize = 1024;
const CHUNK_BYTES: usize = 1 << 16;
/// Flow-control windows are 32 bits wide in s2n-quic.
const MAX_WINDOW_BYTES: u64 = u32::MAX as u64;

// One thread, so that nothing depends on how threads are scheduled.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let role = words.next().unwrap_or_default();
    let done = match (role.as_str(), Options::parse(words)) {
        (_, Err(error)) => Err(error),
        ("server", Ok(options)) => server(&options).await,
        ("client", Ok(options)) => client(&options).await,
        _ => Err("usage: jostle-s2n-quic server|client --OPTION VALUE ...".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn server(options: &Options) -> Result<()> {
    match options.get("controller")? {
        "cubic" => serve(options, Cubic::default()).await,
        "bbr2" => serve(options, Bbr::default()).await,
        other => Err(format!("there is no controller {other}: there are bbr2, cubic").into()),
    }
}

async fn serve<C: Endpoint>(options: &Options, controller: C) -> Result<()> {
    let tls = rustls::Server::builder()
        .with_certificate(Path::new(options.get("certificate")?), Path::new(options.get("key")?))?
        .with_application_protocols(PROTOCOLS.iter())?
        .build()?;
    let mut server = Server::builder()
        .with_tls(tls)?
        .with_io(options.get("listen")?)?
        .with_congestion_controller(controller)?
        .with_event(log::Logs::new(options.get("qlog")?))?
        .start()?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            _ = interrupted.recv() => return Ok(()),
            connection = server.accept() => {
                let connection = connection.ok_or("the endpoint has ended")?;
                tokio::spawn(answer(connection, options.get("www")?.to_owned()));
            }
        }
    }
}

/// Sends a file on each stream of a connection on which one is asked for.
async fn answer(mut connection: Connection, www: String) {
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        let www = www.clone();
        tokio::spawn(async move {
            if let Err(error) = send(stream, Path::new(&www)).await {
                eprintln!("error: {error}");
            }
        });
    }
}

async fn send(mut stream: BidirectionalStream, www: &Path) -> Result<()> {
    let mut request = Vec::new();
    while let Some(part) = stream.receive().await? {
        request.extend_from_slice(&part);
        if request.len() > MAX_REQUEST_BYTES {
            return Err("a request that does not end".into());
        }
    }
    let line = String::from_utf8(request)?;
    let name = line.trim().strip_prefix("GET /").ok_or_else(|| format!("no request: {line:?}"))?;
    if name.contains('/') || name.starts_with('.') {
        return Err(format!("no file of ours: {name}").into());
    }
    let mut file = tokio::fs::File::open(www.join(name)).await?;
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let size = file.read(&mut chunk).await?;
        if size == 0 {
            break;
        }
        chunk.truncate(size);
        stream.send(chunk.into()).await?;
    }
    stream.finish()?;
    Ok(())
}

async fn client(options: &Options) -> Result<()> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = interrupted.recv() => Err("interrupted".into()),
        done = fetch(options) => done,
    }
}

async fn fetch(options: &Options) -> Result<()> {
    let window = options.get("window")?.parse::<u64>()?.min(MAX_WINDOW_BYTES);
    let tls = rustls::Client::builder()
        .with_certificate(Path::new(options.get("certificate")?))?
        .with_application_protocols(PROTOCOLS.iter())?
        .build()?;
    let mut client = Client::builder()
        .with_tls(tls)?
        .with_io("0.0.0.0:0")?
        .with_limits(
            Limits::new().with_data_window(window)?.with_bidirectional_local_data_window(window)?,
        )?
        .start()?;
    let server: std::net::SocketAddr = options.get("server")?.parse()?;
    let mut connection = client.connect(Connect::new(server).with_server_name(SERVER_NAME)).await?;
    let mut stream = connection.open_bidirectional_stream().await?;
    let name = options.get("get")?;
    stream.send(format!("GET /{name}\r\n").into_bytes().into()).await?;
    stream.finish()?;
    let place = Path::new(options.get("downloads")?).join(name);
    let mut file = std::fs::File::create(place)?;
    while let Some(part) = stream.receive().await? {
        // At once, because it is watched how the file grows; in memory that takes no time.
        std::io::Write::write_all(&mut file, &part)?;
    }
    connection.close(0u32.into());
    client.wait_idle().await?;
    Ok(())
}
